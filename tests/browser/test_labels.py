"""No name on a picture is cut off or stands on another: measured in the browser, for screen and for paper."""

import pytest

import isoloss
from isoloss.analysis.study import analyse
from isoloss.errors import InputError, IsolossError
from isoloss.figures import gallery, paper, render
from isoloss.plans.forecast import forecaster_of
from isoloss.records import load, reference

FAULTS = """() => {
  const svg = document.querySelector('svg'), frame = svg.getBoundingClientRect(), out = [];
  const shown = text => text.textContent.trim() && text.getAttribute('opacity') !== '0';
  const words = [...svg.querySelectorAll('text')].filter(shown);
  const boxes = words.map(t => t.getBoundingClientRect());
  boxes.forEach((a, i) => {
    const past = [frame.left - a.left, a.right - frame.right, frame.top - a.top, a.bottom - frame.bottom];
    if (Math.max(...past) > 1)
      out.push(['cut off', words[i].textContent]);
    boxes.slice(i + 1).forEach((b, j) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      const number = text => /^[\\d.,]+[KMBT%]?$/.test(text.textContent);
      const of_one_line = Math.abs(a.bottom - b.bottom) < 1 && number(words[i]) && number(words[i + 1 + j]);
      // two numbers of one line that touch read as one
      if (across > (of_one_line ? -2 : 1) && down > 0.25 * Math.min(a.height, b.height))
        out.push(['overlap', words[i].textContent, words[i + 1 + j].textContent]);
    });
  });
  return out;
}"""
COLUMNS = {
    "epoch-chinchilla/svg_extracted_data.csv": {},
    "kyo-takano-chinchilla/df.csv": {"params": "N", "tokens": "D", "flops": "C", "loss": "loss"},
    "gadre-overtraining/runs_104.csv": {"params": "params", "tokens": "tokens", "loss": "loss_c4_val"},
}


@pytest.fixture(scope="module")
def faults(browser):
    """A function from SVG to what is wrong with its names."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})

    def look(svg):
        page.set_content(svg)
        return page.evaluate(FAULTS)

    yield look
    page.close()


def drawings(figure):
    """For a screen, and for each column of a paper that has room for it."""
    yield "screen", render.svg(figure)
    for column in paper.COLUMNS:
        try:
            yield column, paper.svg(figure, column)
        except InputError:
            continue


def check(faults, figures):
    wrong = {(f.name, style): flaws for f in figures for style, svg in drawings(f) if (flaws := faults(svg))}
    assert wrong == {}
    assert figures


def made(kinds, *source):
    """Every kind's figures that the source allows."""
    out = []
    for kind in kinds.values():
        try:
            out += kind.make(*source)
        except IsolossError:
            continue
    return out


@pytest.mark.parametrize("name", reference.names()[1:])
def test_figures_of_the_recorded_studies(faults, name):
    check(faults, made(gallery.STUDY, analyse(load(reference.folder(name)))))


def test_figures_of_a_study_of_everything(faults, ahead):
    check(faults, made(gallery.STUDY, analyse(ahead)))


@pytest.mark.parametrize("table", COLUMNS)
def test_figures_of_fits_of_public_tables(faults, run_tables, table):
    law = isoloss.fit("chinchilla", run_tables / table, columns=COLUMNS[table])
    check(faults, made(gallery.FIT, law, []))


def test_figures_of_a_table_without_a_law(faults, run_tables):
    table = "gadre-overtraining/runs_104.csv"
    known = forecaster_of(run_tables / table, columns=COLUMNS[table])
    check(faults, made({kind: gallery.FIT[kind] for kind in gallery.WITHOUT_A_LAW}, known, []))


def test_names_on_each_other_and_cut_off_are_seen(faults):
    """Negative control."""
    text = "<text x='{}' y='30' font-size='12'>{}</text>"
    svg = "<svg xmlns='http://www.w3.org/2000/svg' width='200' height='60'>{}</svg>"
    apart = text.format(10, "one") + text.format(80, "two")
    assert faults(svg.format(apart)) == []
    assert faults(svg.format(text.format(10, "one") + text.format(20, "two"))) == [["overlap", "one", "two"]]
    assert faults(svg.format(text.format(190, "beyond"))) == [["cut off", "beyond"]]
    touching = text.format(10, "100") + text.format(29, "200")
    assert faults(svg.format(touching)) == [["overlap", "100", "200"]]
