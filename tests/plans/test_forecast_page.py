"""The table of docs/forecast.md is what the benchmarks' kept output says, rounded."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "forecast.md").read_text("utf-8")
RESULTS = "".join(
    (ROOT / "benchmarks" / "results" / f"{name}.txt").read_text("utf-8")
    for name in ("extrapolation", "further_forecasts")
)

MEANS, ROWS = "means over tables, nominal 90 %", "at 90 %, the top 15% and 35% hidden"
MORE_HIDDEN = "at 90 %, the top 25% and 50% hidden"
EVERY_ROW = "public tables with all their rows, top 15 % and 35 %"
TRAINED = "the same tables, top 15 % and 35 %, rows of at least 5 tokens a parameter"
FAMILY = "constants chosen with the whole family left out, by Winkler's score at all levels"
STANDS = {
    "forecast, 23 tables": (MEANS, "forecast"),
    "forecast, 17 other tables": (ROWS, "other tables"),
    "forecast, 9 tables that chose nothing": (ROWS, "tables that chose nothing"),
    "forecast, the 23 tables, top 25 and 50% hidden": (MORE_HIDDEN, "the same tables"),
    "forecast, the 23 tables with all their rows": (EVERY_ROW, "forecast"),
    "forecast, the 23 tables, five tokens per parameter or more": (TRAINED, "forecast"),
    "its laws and residuals, without step 4, 23 tables": (MEANS, "kriged laws alone"),
    "mean of four laws and their spread, 23 tables": (MEANS, "mean of four forms"),
    "`chinchilla`, t interval, on the 19 tables where it is not refused": (MEANS, "chinchilla, t"),
    "the same, times a factor chosen on the other families": (FAMILY, "chinchilla, t, 90%"),
    "the same by `huber-log`, on 22": (MEANS, "chinchilla, huber-log, t"),
}
"""Of each row of the page the section and the line of the output."""


def numbers(cells):
    return [float(cell.strip().strip("%")) for cell in cells]


def cells_of(section, name):
    """A line of the output: its number of tables, and what is measured."""
    begin = RESULTS.index(section)
    line = next(line for line in RESULTS[begin:].splitlines() if re.split(r"\s{2,}", line)[0] == name)
    return line[58:].split()


def measured(section, name):
    """Number of tables; held, least, half-width, rms and Winkler's score."""
    tables, *shares, rms, _, winkler = cells_of(section, name)
    return int(tables), numbers([*shares, rms, winkler])


def rows():
    section = PAGE.split("## How well it holds")[1]
    cells = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return {name.strip(): given for name, *given in cells[1:] if "---" not in name}


def agree(given, values):
    """As far as the page writes the digits."""
    digits = [len(cell.strip().strip("%").partition(".")[2]) for cell in given]
    pairs = zip(numbers(given), values, digits, strict=True)
    return all(abs(said - value) <= 0.501 * 10**-places for said, value, places in pairs)


def test_every_row_of_the_page_stands_in_the_output():
    assert list(rows()) == list(STANDS)


@pytest.mark.parametrize("name", STANDS)
def test_a_row_of_the_page_is_what_was_measured(name):
    tables, values = measured(*STANDS[name])
    given = rows()[name]
    assert agree(given, values)
    assert not agree(given, [1.02 * value for value in values])  # negative control
    assert set(re.findall(r"\b(?:9|17|19|22|23)\b", name)) <= {str(tables)}


def test_the_other_mean_of_errors_is_said():
    first, second, rival = (
        cells_of(*STANDS[name])[-2]
        for name in list(STANDS)
        if name.startswith(("forecast, 23", "forecast, 17", "`chinchilla`"))
    )
    assert f"the first two rows have {first} and {second}, and `chinchilla` has {rival}" in words()


def test_the_error_with_priors_chosen_elsewhere_is_said():
    name = "chosen with the whole family left out"
    sections = ("all rows", "rows of at least 5 tokens a parameter")
    plain, trained = (cells_of(f"under other priors, {rows}", name)[1] for rows in sections)
    assert f"left out the error is {plain}, and {trained} on rows of five tokens per parameter" in words()


@pytest.mark.parametrize(
    ("section", "line"), [("the forecast at other levels", "{}%"), (FAMILY, "forecast, {}%")]
)
def test_shares_held_at_other_levels_are_those_of_the_output(section, line):
    held = [float(cells_of(section, line.format(level))[1].strip("%")) for level in (50, 80, 95)]
    low, middle, high = (f"{share:.0f}" for share in held)
    assert f" {low}, {middle} and {high}%" in words()


def test_what_is_said_of_more_simulations_is_measured():
    section = "simulated runs of three sizes"
    laws = ("loops, loop-total", "loops, with an outer exponent", "repeated tokens")
    plain, outer, repeats = (round(numbers(cells_of(section, f"{law}: all")[1:2])[0]) for law in laws)
    assert (
        f"held {plain} and {outer}% of new simulated runs of two laws with loops, and {repeats}%" in words()
    )
    said = ", other draws"
    other = [line.partition(said)[2].split() for line in RESULTS.splitlines() if said in line]
    assert len(other) == 4
    held = sorted(round(numbers(cells[1:2])[0]) for cells in other)
    assert f"64 other tables of each held {held[0]} to {held[-1]}%" in words()
    least = min(numbers(cells[2:3])[0] for cells in other)
    assert f"the worst of these 256 tables held {least:.0f}%" in words()


def words():
    return " ".join(PAGE.split())
