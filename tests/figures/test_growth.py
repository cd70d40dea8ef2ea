"""How cost grows: lines from (1, 1) beside their bound, and the worst of their ends in the title."""

import pytest

from isoloss.figures import growth


def rows_of(symbol, unit, pairs):
    return [
        {"what": f"{symbol}: one", "unit": unit, "value": value, "other": other} for value, other in pairs
    ]


ROWS = [
    *rows_of("N", "x time", [(2.0, 3.0), (3.0, 8.0)]),
    *rows_of("N", "x memory", [(9.0, 4.0)]),
    *rows_of("runs", "x time", [(9.0, 2.0), (4.0, 4.0)]),
]


def test_a_line_begins_at_one_beside_its_bound():
    others = [*rows_of("N", "tokens/s", [(1.0, 1.0)]), *rows_of("Q", "x time", [(2, 2)])]
    table = growth.growth([*ROWS, *others])
    keys = {(symbol, what): part.select("bound", "times").rows() for (symbol, what), part in lines(table)}
    assert keys == {
        (growth.GROWING["N"], growth.BOUND): [(1.0, 1.0), (8.0, 8.0)],
        (growth.GROWING["N"], growth.TIME): [(1.0, 1.0), (3.0, 2.0), (8.0, 3.0)],
        (growth.GROWING["N"], growth.MEMORY): [(1.0, 1.0), (4.0, 9.0)],
        (growth.GROWING["runs"], growth.BOUND): [(1.0, 1.0), (4.0, 4.0)],
        (growth.GROWING["runs"], growth.TIME): [(1.0, 1.0), (2.0, 9.0), (4.0, 4.0)],
    }


def lines(table):
    return table.group_by("symbol", "what")


def test_the_title_says_the_worst_of_the_ends():
    assert growth.figure(ROWS).title == (
        "Grown to the end, nothing takes more than 1.00 times the time of its bound, or 2.25 times the memory"
    )
    worse = growth.figure([*ROWS, *rows_of("T", "x time", [(6.0, 4.0)])]).title
    assert "1.50 times the time" in worse


@pytest.mark.parametrize("symbol", growth.GROWING)
def test_a_panel_is_named_by_its_symbol_and_in_words(symbol):
    described = growth.figure([*ROWS, *rows_of(symbol, "x time", [(2.0, 2.0)])]).description
    assert growth.GROWING[symbol] in described
    assert ("loops" in described) == (symbol == "T_m")
