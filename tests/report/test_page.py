import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import polars as pl
import pytest
import story
import telling

from isoloss import files, report
from isoloss.errors import InputError
from isoloss.figures import gallery

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Tags, headings, ids, table rows and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.headings, self.ids, self.links, self.text, self.open = [], [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.links.append(value)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def written(ahead):
    result = telling.reported(ahead.folder)
    return result, result.path.read_text("utf-8")


@pytest.fixture(scope="module")
def page(written):
    return Page(written[1])


def rows_after(html, caption):
    table = html[html.index(caption) :]
    body = re.search(r"<tbody>(.*?)</tbody>", table, re.DOTALL).group(1)
    return re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)


def test_the_report_lies_beside_its_figures(written):
    result, _ = written
    names = {path.name for path in (result.path.parent / "figures").iterdir()}
    assert names == {f"{name}.{kind}" for name in result.figures for kind in ("svg", "png", "pdf", "csv")}
    assert len(result.figures) == 12
    assert [one.key for one in result.findings] == ["gap", "families", "positions", "loops", "left-out"]


def test_what_to_mind_stands_beside_the_figures_of_every_question(written):
    note = '<p class="quiet">All runs here were trained in float32.</p>'
    assert written[1].count(note) == len(re.findall("<section[^>]*>.*?<figure>", written[1], re.DOTALL)) == 6


def test_the_page_runs_nothing_and_fetches_nothing(page, written):
    assert not [tag for tag, _ in page.tags if tag in ("script", "iframe", "object", "embed", "base", "form")]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert all(
        link.startswith(("#", "data:", "figures/", "interactive.html", "runs.csv")) for link in page.links
    )
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert "@import" not in written[1]
    assert "url(http" not in written[1]


def test_the_interactive_page_runs_its_own_scripts_and_leads_nowhere(written):
    read = Page((written[0].path.parent / "interactive.html").read_text("utf-8"))
    policy = next(a["content"] for tag, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
    scripts = next(rule for rule in policy.split("; ") if rule.startswith("script-src "))
    assert scripts.count("'sha256-") == len(scripts.split()) - 1 == 2
    assert policy.startswith("default-src 'none'; ")
    assert policy.endswith("base-uri 'none'; form-action 'none'")


def test_every_file_is_linked_and_there(written, page):
    result, _ = written
    linked = {link for link in page.links if link.startswith("figures/")}
    figure_files = {f"figures/{path.name}" for path in (result.path.parent / "figures").iterdir()}
    assert linked == figure_files
    runs = pl.read_csv(result.path.parent / "runs.csv")
    assert "runs.csv" in page.links
    assert runs.height == len(set(runs["run_id"])) == len(rows_after(written[1], "runs of the study"))


def test_the_page_begins_with_what_was_trained_and_says_each_doubt_once(written, ahead):
    result, html = written
    finished = sum(record.status == "finished" for record in ahead.records)
    assert f"{finished} models of" in html
    assert f"({story.D_POINTS[-1] // story.BATCH_TOKENS:,} updates)" in html
    doubts = {caveat for finding in result.findings for caveat in finding.caveats}
    doubts |= {finding.sentence for finding in result.findings[3:]}
    sure = html[html.index('<ul class="sure">') : html.index("</section>")]
    list_items = [unescape(words) for words in re.findall(r"<li>(.*)</li>", sure)]
    assert sorted(list_items) == sorted(doubts)
    assert sum(words.startswith("Ranges are") for words in list_items) == 1
    titles = [finding.title for i, finding in enumerate(result.findings) if finding.caveats or i >= 3]
    assert [unescape(words) for words in re.findall(r"<li>([^<]*)\n<ul>", sure)] == titles


def test_hostile_names_are_there_as_text(page):
    text = "".join(page.text)
    assert story.HOSTILE in text
    assert text.count("<script>alert(1)</script>") >= 5


def test_the_script_check_can_fail(written):
    """Negative control: the same page with one name let through unescaped."""
    broken = written[1].replace("&lt;script&gt;alert(1)&lt;/script&gt;", "<script>alert(1)</script>", 1)
    assert [tag for tag, _ in Page(broken).tags if tag == "script"]


def test_headings_go_down_one_level_at_a_time(page):
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))


def test_ids_are_unique_and_every_link_leads_somewhere(page):
    assert len(page.ids) == len(set(page.ids))
    assert all(link[1:] in page.ids for link in page.links if link.startswith("#"))
    used = {
        i
        for _, a in page.tags
        for name in ("aria-labelledby", "aria-describedby")
        for i in [a.get(name)]
        if i
    }
    assert used <= set(page.ids)


def test_every_picture_has_a_name_a_description_and_a_table(page, written):
    result, html = written
    pictures = [a for tag, a in page.tags if tag == "svg"]
    wide = [a for a in pictures if not a["aria-labelledby"].endswith("-narrow-title")]
    assert len(wide) == len(result.figures)
    assert len({a["aria-labelledby"] for a in pictures}) == len(pictures) > len(wide)
    assert all(a["role"] == "img" and a["aria-labelledby"] and a["aria-describedby"] for a in pictures)
    for name in result.figures:
        assert f"Numbers behind {name} (" in html


def test_a_mark_says_its_numbers_to_a_pointer(written):
    """A title inside a path is what a browser shows where a pointer rests."""
    titles = re.findall(r"<(?:path|use)[^>]*><title>([^<]*)</title></(?:path|use)>", written[1])
    assert len(titles) > 50
    assert any(re.search(r"LSTM; Parameters N [\d.]+K; Validation loss \d\.\d+", title) for title in titles)
    assert not [title for title in titles if "undefined" in title or "None" in title]


def code_names(page):
    """In what is said, but for what a user is told to write so that a refusal is lifted."""
    shown = re.sub(r"<(script|style|svg|code|pre|dt|td|th)\b.*?</\1>", "", page, flags=re.S)
    words = re.sub(r"What would lift it: .*?</p>", "", re.sub(r"<(?!/p)[^>]+>", " ", shown), flags=re.S)
    return re.findall(
        r"(?<![\w-])(?:shifted_\w+|params\w*|recurrence)\b|of tokens \(|in tokens\b|&gt;=", words
    )


def test_names_of_the_code_are_seen():
    assert (
        len(code_names("<p>The top 4 rungs of params hidden (params &gt;= 9e9)</p> power law in tokens")) == 4
    )
    assert code_names('<a href="figures/loss-by-params.svg">loss-by-params</a> <dt>params</dt>') == []


def test_no_name_of_the_code_is_in_a_sentence_and_the_page_is_small(written):
    _, page = written
    assert not code_names(page)
    assert len(page.encode("utf-8")) <= 1_000_000


def test_every_picture_of_a_report_is_a_kind_to_plot(written):
    kinds = gallery.STUDY.keys() | gallery.FIT.keys()
    assert not [name for name in written[0].figures if not any(name.startswith(kind) for kind in kinds)]


def test_tables_have_captions_and_scoped_headers(page):
    tables = sum(tag == "table" for tag, _ in page.tags)
    assert tables == sum(tag == "caption" for tag, _ in page.tags)
    assert all(a.get("scope") in ("col", "row") for tag, a in page.tags if tag == "th")


def test_every_run_is_in_the_table_with_its_status_and_reason(written, ahead):
    rows = rows_after(written[1], "runs of the study")
    assert len(rows) == len(ahead.plan["runs"])
    for run in ahead.plan["runs"]:
        assert sum(run["run_id"] in row for row in rows) == 1
    for status, reason in (("diverged", "loss was not finite"), ("failed", "RunError"), ("running", "–")):
        (row,) = [row for row in rows if f"<td>{status}</td>" in row]
        assert reason in row


def test_a_run_without_an_evaluation_has_dashes_and_no_zero(written):
    (row,) = [r for r in rows_after(written[1], "runs of the study") if "<td>running</td>" in r]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert cells[3:7] == ["–"] * 4


def test_fits_refusals_recipe_and_provenance_are_shown(written):
    html = written[1]
    fits = rows_after(html, "Laws fitted")
    assert len(fits) == 3 * 4 + (5 + 1) + 3
    assert "refused" in html
    assert len(rows_after(html, "The recipe of every size")) >= 5 + 12 + 9
    for word in ("0123456789abcdef", "a made-up processor", "float32", "c" * 64, "2.13.0", "isoloss run"):
        assert word in html


def test_the_loop_law_is_shown_with_intervals(written):
    (row,) = [r for r in rows_after(written[1], "Laws fitted") if "looped: total loss" in r]
    assert re.search(r"gamma = [\d.]+ \([\d.]+ to [\d.]+\)", row)


def test_the_same_records_give_the_same_bytes(told, tmp_path):
    folder = told(replace(story.FEW, lstm_widths=())).folder
    result, rewritten = report.write(folder, tmp_path / "one"), report.write(folder, tmp_path / "two")
    assert rewritten.path.read_text("utf-8") == result.path.read_text("utf-8")
    for name in result.figures:
        for kind in ("svg", "png", "csv"):
            first = result.path.parent / "figures" / f"{name}.{kind}"
            second = rewritten.path.parent / "figures" / f"{name}.{kind}"
            assert files.sha256(first) == files.sha256(second)


def test_pictures_of_an_earlier_report_do_not_stay(told, tmp_path):
    stale = tmp_path / "figures" / "looped-grid.svg"
    files.write_text(stale, "<svg/>")
    kept = tmp_path / "figures" / "notes.txt"
    files.write_text(kept, "mine")
    report.write(told(replace(story.FEW, finished=False)).folder, tmp_path)
    assert not stale.exists()
    assert kept.exists()


def test_a_study_with_nothing_finished_still_gets_its_page(told, tmp_path):
    result = report.write(told(replace(story.FEW, finished=False)).folder, tmp_path)
    html = result.path.read_text("utf-8")
    assert result.figures == ()
    assert html.count("Missing here: no run has finished") == 4
    assert len(rows_after(html, "runs of the study")) == 18


def test_a_study_of_transformers_alone_has_the_chapters_that_it_planned(told, tmp_path):
    result = report.write(told(replace(story.FEW, lstm_widths=())).folder, tmp_path)
    html = result.path.read_text("utf-8")
    assert set(result.figures) == {"loss-by-params", "context-laws", "context-steps", "context-sizes"}
    assert "Missing here" not in html


def test_a_folder_that_is_no_study_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(InputError, match="holds no study"):
        report.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_torn_record_is_refused_and_nothing_is_written(told, tmp_path):
    study = telling.write(tmp_path / "study", replace(story.FEW, transformer_widths=(20,), lstm_widths=()))
    record = next((study / "runs").glob("*/record.json"))
    record.write_text(record.read_text("utf-8")[:200], "utf-8")
    with pytest.raises(InputError, match="is not JSON"):
        report.write(study)
    assert not (study / "report").exists()


def test_a_report_needs_no_torch(told):
    folder = told(replace(story.FEW, finished=False)).folder
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import isoloss.laws, isoloss.figures, isoloss.records\n"
        "from isoloss import report\n"
        f"print(report.write({str(folder)!r}, {str(folder / 'elsewhere')!r}).path)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("index.html")
