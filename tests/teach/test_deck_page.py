"""The deck as one file: thirteen slides, nothing fetched, nothing unescaped, badges that tell the truth."""

import base64
import hashlib
import re
import tomllib
from html.parser import HTMLParser
from importlib import resources

import fake_panels
import pytest
from fake_panels import HOSTILE, PANELS, SLIDES

from isoloss import files
from isoloss.errors import InputError
from isoloss.teach import result
from isoloss.teach.deck import fragment, page
from isoloss.teach.panels import PANELS as ALL
from isoloss.teach.panels import panel as panel_named

VENDORED = resources.files("isoloss.teach.deck").joinpath("vendor/reveal")


class Read(HTMLParser):
    """Tags with their attributes, scripts with their text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.scripts, self._script = [], [], False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        self._script = tag == "script"

    def handle_endtag(self, tag):
        self._script = self._script and tag != "script"

    def handle_data(self, data):
        if self._script:
            self.scripts[-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def build(results=None, **values):
    return page.build(results, **{"panels": PANELS, "sources": SLIDES} | values)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    result.write(fake_panels.recorded(prompt=HOSTILE[:40]), folder)
    return folder


@pytest.fixture(scope="module")
def built(results):
    return build(results)


@pytest.fixture(scope="module")
def live(results):
    return build(results, live=True)


@pytest.fixture(params=["built", "live"])
def either(request):
    return request.getfixturevalue(request.param)


def test_there_are_thirteen_slides_and_an_appendix_with_a_heading_each(either):
    read = Read(either)
    assert [part["data-label"] for part in read.all("section")] == [*map(str, range(1, 14)), "A1"]
    ids = [attributes.get("id") for attributes in read.all("h2")]
    assert ids[:14] == [f"slide-{number}" for number in range(1, 15)]
    assert all(attributes["aria-labelledby"] in ids for attributes in read.all("section"))
    assert [link["href"] for link in read.all("a")][:14] == [f"#slide-{n}" for n in range(1, 15)]


def test_nothing_is_fetched(either):
    read = Read(either)
    assert not [attributes for _, attributes in read.tags if "src" in attributes]
    links = [attributes["href"] for _, attributes in read.tags if "href" in attributes]
    assert all(link.startswith(("#", "data:")) for link in links)
    style = either[either.index("<style>") : either.index("</style>")]
    assert "@import" not in style
    assert "url(" not in style


def test_every_script_is_named_by_its_hash_and_none_is_elsewhere(either):
    read = Read(either)
    (policy,) = [meta["content"] for meta in read.all("meta") if "http-equiv" in meta]
    hashes = re.findall(r"'sha256-([^']+)'", policy)
    script_hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in read.scripts]
    assert script_hashes == hashes
    assert len(script_hashes) == len(page.SCRIPTS)
    assert "unsafe-eval" not in policy
    assert "script-src 'sha256-" in policy
    assert policy.startswith("default-src 'none'")
    assert not [name for _, attributes in read.tags for name in attributes if name.startswith("on")]
    assert not [script for script in read.all("script") if script]  # classic scripts without attributes


def test_only_a_live_page_may_talk_to_its_server(built, live):
    assert "connect-src &#39;self&#39;" in live
    assert "connect-src" not in built
    assert "data-live" in live.split(">", 2)[1]
    assert "<form class=" not in built
    assert "Run all" not in built
    for name in ("token", "127.0.0.1"):
        assert name not in re.sub(r"<script>.*?</script>", "", built, flags=re.DOTALL)


def test_ids_are_unique(either):
    ids = [attributes["id"] for _, attributes in Read(either).tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_words_of_users_and_results_are_escaped(either):
    outside = re.sub(r"<(script|style)>.*?</\1>", "", either, flags=re.DOTALL)
    assert "alert(1)" in outside
    assert "<script>alert" not in outside
    assert "&lt;letters&gt;" in outside
    assert "&amp;lt;" not in outside


def test_a_recording_carries_its_badge_basis_and_date(built):
    assert "RECORDED" in built
    assert "n = 2,000 unseen strings · 3 seeds · Wilson interval · 1.5 CPU-seconds" in built
    assert '<time datetime="2026-01-02T03:04:05+00:00">2026-01-02</time>' in built
    assert "stale" not in re.sub(r"<style>.*?</style>", "", built, flags=re.DOTALL)
    assert "LIVE" not in re.sub(r"<script>.*?</script>", "", built, flags=re.DOTALL)
    assert built.count("Not measured yet") == len(PANELS) - 1


def test_a_recording_by_other_code_is_called_stale():
    html = fragment.output(PANELS[0], fake_panels.recorded(experiment="b" * 64), "RECORDED")
    assert "stale: the code has changed since" in html


def test_a_quoted_sentence_is_grey_until_it_is_measured(built):
    assert 'class="verdict" data-verdict="quick" data-key="top"' in built
    assert "NOT MEASURED" in build()
    assert 'class="verdict unmeasured" data-verdict="quick" data-key="top"' in build()


def test_a_figure_has_one_name_one_description_and_a_table_with_its_interval(built):
    read = Read(built)
    wide, narrow = [svg for svg in read.all("svg") if svg.get("role") == "img"]
    ids = [attributes.get("id") for _, attributes in read.tags]
    for picture in (wide, narrow):  # of which a screen shows one
        assert ids.count(picture["aria-labelledby"]) == ids.count(picture["aria-describedby"]) == 1
    assert wide["aria-labelledby"] != narrow["aria-labelledby"]
    assert "graphics-" not in built
    assert '<th scope="col" class="number">low</th><th scope="col" class="number">high</th>' in built


def test_a_long_table_says_that_it_is_cut():
    tables = {"points": [{"x": x, "value": 1.0, "low": 0.0, "high": 2.0, "n": 9} for x in range(250)]}
    (drawn,) = fragment.pictures(PANELS[0], PANELS[0].settings(), tables, "LIVE")
    assert len(drawn.table.rows) == 200
    assert drawn.narrow == "", "while it runs, a picture is drawn once"
    assert "the first 200 of 250 rows" in drawn.table.caption


def test_what_a_vote_hides_is_marked():
    taste = next(panel for panel in PANELS if panel.name == "taste")
    html = fragment.output(taste, fake_panels.recorded(taste), "RECORDED")
    assert "data-vote" in html
    assert "data-reveal" in html
    assert html.index("data-vote") < html.index("the highest of the points")
    settings = taste.settings()
    tables = fake_panels.measure(settings, lambda *_: None)
    assert "<svg" not in fragment.partial_output(taste, settings, tables)
    assert "<svg" in fragment.partial_output(PANELS[0], settings, tables)


def test_settings_become_fields_with_their_bounds(live):
    read = Read(live)
    named = [part for tag in ("input", "textarea") for part in read.all(tag) if "name" in part]
    assert len(named) == len(PANELS) * len(PANELS[0].settings.model_fields)
    labels = {label["for"] for label in read.all("label") if "for" in label}
    assert all(attributes["id"] in labels for attributes in named)
    quick = {part["name"]: part for part in named if part["id"].startswith("set-quick-")}
    points, rates, prompt = (quick[name] for name in ("points", "rates", "prompt"))
    assert (points["data-kind"], points["min"], points["max"], points["step"]) == ("integer", "1", "50", "1")
    assert (rates["data-kind"], rates["type"], rates["value"]) == ("numbers", "text", "0.1, 0.2")
    assert (prompt["data-kind"], prompt["maxlength"]) == ("string", "40")
    assert (quick["loud"]["data-kind"], "checked" in quick["loud"]) == ("boolean", False)
    assert quick["seconds"]["step"] == "any"


@pytest.mark.parametrize("shown", ALL, ids=lambda shown: shown.name)
def test_what_a_form_shows_first_is_what_the_panel_takes(shown):
    """The text of each field, read as the page's script reads it, gives the default settings back."""
    html = page.build(live=True, sources={"1": f'<h2>x</h2>{{{{ panel("{shown.name}") }}}}'})
    number, given = {"integer": int, "number": float}, {}
    for part in Read(html).all("input"):
        if (kind := part.get("data-kind")) is None:
            continue
        of = number.get(kind.removesuffix("s"), str)
        many = kind.endswith("s")
        given[part["name"]] = (
            [of(one) for one in part["value"].split(", ")]
            if many
            else ("checked" in part if kind == "boolean" else of(part["value"]))
        )
    assert shown.settings_from(given) == shown.settings()
    missing = shown.settings.model_fields.keys() - given.keys()
    assert missing == {part["name"] for part in Read(html).all("textarea")}


def test_a_slide_without_a_heading_and_an_unknown_panel_are_errors():
    with pytest.raises(InputError, match="must begin with <h2>"):
        build(sources={"1": "<p>no heading</p>"})
    with pytest.raises(InputError, match="no panel 'nope'"):
        build(sources={"1": '<h2>x</h2>{{ panel("nope") }}'})


def test_results_that_are_no_folder_or_no_results_are_errors(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        build(tmp_path / "nothing")
    (tmp_path / "quick.json").write_text("{}")
    with pytest.raises(InputError, match=r"quick\.json"):
        build(tmp_path)


def test_sentences_of_a_recording_are_written_from_its_tables_again(tmp_path):
    lie = (
        fake_panels.recorded().sentences[0].model_copy(update={"text": "The older side wins.", "exact": True})
    )
    result.write(fake_panels.recorded().model_copy(update={"sentences": [lie]}), tmp_path)
    built = build(tmp_path)
    assert "The older side wins." not in built
    assert "the highest of the points is" in built


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"panel": "other"}, "it holds panel 'other'"),
        ({"tables": {}}, "its tables cannot be told"),
        ({"tables": {"points": []}}, "its tables cannot be told"),
        ({"tables": {"points": [{"value": "much"}]}}, "its tables cannot be told"),
        ({"settings": {"poker": 1}}, "poker"),
        ({"sentences": [{"key": "a", "text": "An LSTM cannot do it."}]}, "must not be shown"),
    ],
)
def test_a_recording_of_another_panel_or_with_other_tables_is_an_error_of_the_file(tmp_path, change, words):
    held = fake_panels.recorded()
    files.write_json(tmp_path / f"{held.panel}.json", held.model_dump(mode="json") | change)
    with pytest.raises(InputError, match=words):
        build(tmp_path)


def test_reveal_is_vendored_without_a_change():
    manifest = tomllib.loads(VENDORED.joinpath("manifest.toml").read_text("utf-8"))
    assert (manifest["name"], manifest["licence"]) == ("reveal.js", "MIT")
    files = {part.name: part.read_bytes() for part in VENDORED.iterdir() if part.name != "manifest.toml"}
    assert {name: hashlib.sha256(data).hexdigest() for name, data in files.items()} == manifest["sha256"]
    assert b"Copyright (C) 2011-2026 Hakim El Hattab" in files["LICENSE"]
    assert manifest["version"].encode() in files["reveal.js"]


def test_no_winner_has_a_colour():
    style = resources.files("isoloss.teach.deck").joinpath("deck.css").read_text("utf-8")
    assert not re.search(r"\b(win|winner|lose|loser|good|bad)\b", style)
    assert "#0072b2" in style
    assert "#cc5500" in style


def exported(tmp_path, *results):
    path = tmp_path / "results.json"
    values = {"title": "T", "made": "2026-01-02", "results": [one.model_dump(mode="json") for one in results]}
    files.write_json(path, values)
    return path


def test_what_the_deck_exports_can_be_read_back(tmp_path):
    built = build(exported(tmp_path, fake_panels.recorded(prompt="from the class")))
    assert "From from the class" in built
    assert built.count("Not measured yet") == len(PANELS) - 1


def test_results_of_one_panel_lie_over_those_that_ship(tmp_path):
    shipped = page.recordings(ALL, None)
    bill = shipped["bill"].model_copy(update={"made": "2030-01-01T00:00:00+00:00"})
    for own in (exported(tmp_path, bill), result.write(bill, tmp_path / "folder").parent):
        recordings = page.recordings(ALL, own)
        assert recordings["bill"].made.startswith("2030")
        assert recordings["reach"] == shipped["reach"]


def test_results_of_no_panel_are_refused(tmp_path):
    for own in (tmp_path, exported(tmp_path)):
        with pytest.raises(InputError, match="holds no result of a panel"):
            build(own)


def test_a_figure_carries_its_own_badge():
    badges = {
        picture.name: picture.badge
        for name, held in page.recordings(ALL, None).items()
        if name in ("bill", "showdown", "steps")
        for one in [panel_named(name)]
        for picture in fragment.pictures(one, one.settings_from(held.settings), held.tables, "LIVE")
    }
    assert badges["bill-bill-cost"] == "LIVE"
    assert badges["bill-bill-memory"] == badges["steps-softmax"] == "EXACT"
    assert badges["showdown-loss-by-position"] == "RECORDED"


def test_speaker_notes_stay_with_the_speaker_where_no_script_runs():
    style = resources.files("isoloss.teach.deck").joinpath("deck.css").read_text("utf-8")
    assert re.search(r"html:not\(\.js\) :is\([^)]*\.notes\) \{ display: none; \}", style)
