"""The report of a fit: every form has one, every doubt is on it, hostile words are text."""

import json
import re
from dataclasses import replace

import fitted
import numpy as np
import pytest
from test_page import code_names

from isoloss import files, report
from isoloss.analysis import fit_findings, fit_tables, frontier, refits
from isoloss.analysis.fit_rows import brief_formula, condition
from isoloss.analysis.method_frontiers import law_frontier
from isoloss.errors import InputError, Refusal
from isoloss.figures.render import Picture
from isoloss.laws import FORMS, FitStatus, fit
from isoloss.plans import allocation_exponent
from isoloss.plans.methods import exponents_by_method
from isoloss.report import fit_page, publish
from isoloss.sources.published import published

TRIALS = ("design", "backtest", "hidden-runs", "isoflop-curves", "compute-frontier")
WITH_FRONTIER = {
    "chinchilla", "data-constrained", "kaplan-nd", "loop-equivalence", "loop-step", "loop-total",
    "outer-exponent", "pearce-song",
}  # fmt: skip
HOSTILE = "<script>alert('x')</script>&\"{{ 7 * 7 }}"


def sourced(law_fit):
    """The fit with a source as a table's checks leave it, hostile names included."""
    return replace(
        law_fit,
        warnings=("a doubt of its own",),
        source={
            "path": f"{HOSTILE}.csv",
            "sha256": "0" * 64,
            "rows_read": 33,
            "rows_kept": 30,
            "where": "loss < 9",
            "columns": {"params": "Model Size", "loss": HOSTILE},
            "derived": {"tokens": "tokens = flops / (6 params)"},
            "notes": ["params is the column 'Model Size'"],
            "excluded": [{"row": 17, "reason": "diverged: loss 11", "by_outcome": True}],
            "findings": [
                {"kind": "duplicates", "rows": [3, 4], "message": "rows 3 and 4 agree", "mend": "drop one"}
            ],
        },
    )


@pytest.fixture(scope="module")
def undrawn():
    """Charts become specifications, not pictures: drawing is tested elsewhere and takes most of the time."""
    drawn = {}

    def stand_in(figure):
        drawn[figure.name] = figure.chart.to_dict(validate=False)
        return Picture('<svg viewBox="0 0 9 9"></svg>', b"png", b"pdf")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publish.render, "render", stand_in)
        patched.setattr(publish.paper, "svg", lambda *_, **__: '<svg viewBox="0 0 9 9"></svg>')
        patched.setattr(frontier, "DRAWS", 100)
        patched.setattr(frontier, "POINTS", 9)
        yield drawn


@pytest.fixture(scope="module")
def written(undrawn, tmp_path_factory):
    """A fit on disk, and the first report on it."""
    path = tmp_path_factory.mktemp("fit") / "fit.json"
    files.write_json(path, sourced(fitted.fitted("chinchilla")).to_json())
    return path, report.write_fit(path)


@pytest.fixture(scope="module")
def page(written):
    return written[1].path.read_text("utf-8")


def data_of(spec):
    """Every row of data in a chart's specification, where they stand as JSON texts."""
    return [row for text in spec["datasets"].values() for row in json.loads(text)]


def rows_after(html, caption):
    body = re.search(r"<tbody>(.*?)</tbody>", html[html.index(f"<caption>{caption}") :], re.DOTALL).group(1)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]


@pytest.mark.parametrize("law", sorted(FORMS))
def test_every_form_has_a_report(law, undrawn, monkeypatch, tmp_path):
    monkeypatch.setattr(refits, "OBJECTIVES", refits.OBJECTIVES[:1])
    undrawn.clear()
    law_fit = fitted.fitted(law)
    result = fit_page.write(law_fit, tmp_path)
    sized = set(law_fit.form.inputs) == {"params", "tokens"}
    expected = ["law", *["loss-by-ratio"] * sized, "real-against-predicted", "residuals"]
    if law_fit.covariance is not None:
        expected.append("correlations")
        if law_fit.clusters is None:
            expected.append("profiles")
    plain = sized and law_fit.allocation() is not None and {"alpha", "beta"} <= set(law_fit.params)
    expected += ["parameter-cloud"] * plain
    if law in WITH_FRONTIER:
        # What a loop costs is on no axis of the lines of equal loss.
        expected += [] if "loop" in law else ["iso-loss"]
        expected += ["plan-frontier", "plan-allocation"]
        expected += ["tokens-per-param"] * sized
    expected += ["exponents"] * bool(law_fit.form.limits)
    tried = [name for name in result.figures if name in TRIALS]
    assert [name for name in result.figures if name not in TRIALS] == expected
    # What the law was not tried on is said, with the reason.
    assert len(tried) == len(TRIALS) or "Missing here" in result.path.read_text("utf-8")
    assert "backtest" in tried or law not in WITH_FRONTIER
    for name, spec in undrawn.items():
        json.dumps(spec, allow_nan=False)
        if not name.startswith("plan-") and name not in (
            *TRIALS,
            "exponents",
        ):  # those have tests of their own
            # What is not finite becomes null on its way to JSON.
            rows = data_of(spec)
            assert rows
            assert not [row for row in rows if None in row.values()]
    html = result.path.read_text("utf-8")
    assert f"<h1>{brief_formula(law_fit).replace(chr(39), '&#39;')}</h1>" in html
    assert f"<strong>{condition(law_fit)}</strong>" in html
    assert ("has no compute frontier" in html) == (law not in WITH_FRONTIER)
    assert html.count("<figure>") == len(expected) + len(tried)
    sentences = {finding.key: finding.sentence for finding in result.findings}
    assert sentences["law"].startswith(brief_formula(law_fit))


def test_printed_laws_of_n_and_d_stand_in_the_picture_of_tokens_a_parameter(undrawn, tmp_path):
    printed_laws = [published("chinchilla"), published("chinchilla-epoch")]
    result = report.write_fit(fitted.fitted("chinchilla"), tmp_path / "page", others=printed_laws)
    numbers = (result.path.parent / "figures" / "tokens-per-param.csv").read_text("utf-8")
    assert all(f'"{name}"' in numbers for name in ("this fit", "chinchilla", "chinchilla-epoch"))
    assert '"strokeDash": [5, 3]' in json.dumps(undrawn["iso-loss"]), "those of the first law beside it"


def test_it_lies_beside_the_fit_and_is_left_alone_while_true(written):
    path, first = written
    assert first.written
    assert first.path == path.parent / "fit-report" / "index.html"
    names = {one.name for one in (first.path.parent / "figures").iterdir()}
    assert names == {f"{name}.{kind}" for name in first.figures for kind in ("svg", "png", "pdf", "csv")}
    second = report.write_fit(path)
    assert not second.written
    assert second.figures == first.figures
    assert second.summary == first.summary


def test_another_fit_is_another_report(written, undrawn, tmp_path):
    changed = replace(sourced(fitted.fitted("power-floor")), warnings=("another doubt",))
    files.write_json(tmp_path / "fit.json", changed.to_json())
    first = report.write_fit(tmp_path / "fit.json")
    assert first.written
    bare = replace(changed, covariance=None)
    files.write_json(tmp_path / "fit.json", bare.to_json())
    second = report.write_fit(tmp_path / "fit.json")
    assert second.written
    # Pictures that the new report does not make are gone.
    left = {one.stem for one in (second.path.parent / "figures").iterdir()}
    assert left == set(second.figures)
    assert "correlations" in first.figures
    assert "correlations" not in left


def test_everything_that_the_fit_carries_is_on_the_page(written, page):
    law_fit = sourced(fitted.fitted("chinchilla"))
    parameters = rows_after(page, "Parameters")
    assert [row[0] for row in parameters] == [*law_fit.params, "a: N_opt ~ C^a", "b: D_opt ~ C^b"]
    assert parameters[2][1] == f"{law_fit.params['alpha']:.4g}"
    low, high = law_fit.intervals["alpha"]
    assert parameters[2][3] == f"{low:.4g} to {high:.4g}"
    solution = {row[0]: row[1] for row in rows_after(page, "The solution")}
    assert solution["Law"] == law_fit.formula()
    assert solution["Status"].startswith(
        "converged: one clear optimum. This does not say that the law is right"
    )
    assert solution["Objective, summed over points"] == "squared-log"
    assert "<strong>30 rows, N = 1M to 1B and D = 100M to 100B.</strong>" in page
    assert solution["Its value at the fit"] == f"{law_fit.objective.value:.10g}"
    assert solution["Starts"] == f"{law_fit.starts.agreeing} of {law_fit.starts.tried} agree"
    source = {row[0]: row[1] for row in rows_after(page, "Source")}
    assert source["derived: tokens"] == "tokens = flops / (6 params)"
    assert rows_after(page, "Rows left out: 1") == [["17", "diverged: loss 11", "yes"]]
    assert rows_after(page, "What the checks")[0][:3] == ["duplicates", "3, 4", "rows 3 and 4 agree"]
    assert "a doubt of its own" in page
    assert law_fit.form.source in page


def test_no_name_of_the_code_is_in_a_sentence(page):
    assert "rungs of N hidden (N ≥ " in page
    assert code_names(page) == []


def test_hostile_words_are_text(page):
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "{{ 7 * 7 }}" in page
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert not re.search(r'(src|href)="(?!#|data:|figures/)', page)


def test_sensitivity_names_each_objective_and_says_what_moves(page):
    rows = rows_after(page, "The same rows under other objectives")
    assert [row[0] for row in rows] == [
        "squared-log (this fit)", "squared", "huber-log, delta 0.0001", "huber-log, delta 0.001",
        "huber-log, delta 0.01",
    ]  # fmt: skip
    law_fit = fitted.fitted("chinchilla")
    assert rows[0][-1] == f"{law_fit.allocation()['a']:.4f}"
    x, loss = fitted.runs_of("chinchilla")
    squared = fit("chinchilla", x, loss)
    assert rows[1][2:] == [f"{value:.4g}" for value in squared.params.values()] + [
        f"{squared.allocation()['a']:.4f}"
    ]


def test_a_choice_of_objective_beyond_the_interval_is_said():
    x, loss = fitted.runs_of("chinchilla")
    loss[::6] *= 1.05  # outliers at the smallest D
    law_fit = fit("chinchilla", x, loss, objective="huber-log")
    findings = fit_page.findings(law_fit, refits.objectives(law_fit), Refusal("not asked", mend="ask"))
    (sentence,) = [finding.sentence for finding in findings if finding.key == "objective"]
    assert "beyond its interval" in sentence


def test_left_out_runs_are_true_refits():
    x, loss = fitted.runs_of("chinchilla")
    law_fit = fitted.fitted("chinchilla")
    without = refits.leave_one_out(law_fit)
    assert (len(without.each), without.of) == (30, 30)
    moves = [one.moved for one in without.each]
    assert moves == sorted(moves, reverse=True)
    worst = without.each[0]
    (row,) = np.flatnonzero(np.isclose(loss, worst.loss, rtol=1e-12))
    keep = np.arange(30) != row
    truth = fit("chinchilla", {k: v[keep] for k, v in x.items()}, loss[keep], objective="squared-log")
    for name, value in truth.params.items():
        assert worst.params[name] == pytest.approx(value, rel=1e-5)
    shift = np.log(truth.predict(**x).loss / law_fit.predict(**x).loss)
    assert worst.moved == pytest.approx(np.sqrt(np.mean(shift**2)) / law_fit.sigma, rel=1e-4)


def test_an_outlier_is_the_run_that_moves_the_law_most():
    x, loss = fitted.runs_of("chinchilla")
    loss[7] *= 1.1
    without = refits.leave_one_out(fit("chinchilla", x, loss, objective="squared-log"))
    assert without.each[0].loss == pytest.approx(loss[7])
    assert without.each[0].moved > 2 * without.each[1].moved


def test_a_run_that_alone_carries_a_parameter_comes_first():
    D = np.append(np.geomspace(1e9, 1.01e9, 10), [1e10, 1e11])
    truth = fitted.TRUTH["chinchilla"][0]
    x = {"params": np.geomspace(1e6, 1e9, 12), "tokens": np.round(D, -9)}
    loss = FORMS["chinchilla"].loss(truth, x)
    loss = loss * np.exp(0.0005 * np.random.default_rng(0).standard_normal(12))
    held = {name: truth[name] for name in ("A", "alpha")}
    first, second, third = refits.leave_one_out(fit("chinchilla", x, loss, fixed=held)).each[:3]
    for alone in (first, second):  # two values of D do not determine E, B and beta
        assert (alone.moved, alone.params) == (None, None)
    assert {fit_tables.run_words(alone).split(", ")[1] for alone in (first, second)} == {
        "D = 10B",
        "D = 100B",
    }
    assert third.moved is not None
    # A parameter fewer can do without either.
    law_fit = fit("chinchilla", x, loss, fixed=held | {"E": truth["E"]})
    assert all(one.moved is not None for one in refits.leave_one_out(law_fit).each)


def test_of_many_runs_those_that_pull_hardest_are_left_out(monkeypatch):
    x, loss = fitted.runs_of("chinchilla", seeds=4)
    loss[50] *= 1.1
    law_fit = fit("chinchilla", x, loss, objective="squared-log", cluster=np.arange(len(loss)))
    everyone = refits.leave_one_out(law_fit)
    monkeypatch.setattr(refits, "MOST", 20)
    some = refits.leave_one_out(law_fit)
    assert (len(some.each), some.of) == (20, len(loss))
    assert [one.loss for one in some.each[:5]] == [one.loss for one in everyone.each[:5]]
    assert f"20 of {len(loss)}" in fit_tables.influence(law_fit, some).caption


def test_the_interval_of_a_covers_that_of_the_delta_method():
    law_fit = fitted.fitted("chinchilla")
    low, high = allocation_exponent(law_fit).interval
    assert low < law_fit.allocation()["a"] < high
    alpha, beta = law_fit.params["alpha"], law_fit.params["beta"]
    place = [law_fit.form.parameters.index(name) for name in ("alpha", "beta")]
    slope = np.zeros(5)
    slope[place] = np.array([-1, 1]) * alpha * beta / (alpha + beta) ** 2
    error = np.sqrt(slope @ law_fit.plain_covariance() @ slope)
    assert high - low == pytest.approx(2 * 1.708 * error, rel=0.1)


def test_page_methods_and_figure_give_one_interval_of_a():
    data = fitted.fitted("chinchilla").data
    N, D, loss = (np.array(column) for column in (data.inputs["params"], data.inputs["tokens"], data.loss))
    law_fit = fit("chinchilla", {"params": N, "tokens": D}, loss, objective="huber-log")
    methods = exponents_by_method(6 * N * D, N, loss, tokens=D, run=N.tolist(), level=law_fit.level)
    page = fit_findings._allocation(allocation_exponent(law_fit)).numbers["interval"]
    figure = law_frontier(law_fit, 1e17, 1e20, level=law_fit.level).interval
    assert page == methods.each[-1].interval == figure
    # Another level is another interval.
    assert law_frontier(law_fit, 1e17, 1e20, level=0.5).interval != page


@pytest.mark.parametrize("status", [s for s in FitStatus if s is not FitStatus.CONVERGED])
def test_a_fit_that_is_not_to_be_trusted_says_so_first(status, undrawn, tmp_path):
    law_fit = replace(fitted.fitted("power-floor"), status=status, reason=status.value, covariance=None)
    html = fit_page.write(law_fit, tmp_path).path.read_text("utf-8").replace("&#39;", "'")
    notice = html.index('<p class="missing">')
    assert notice < html.index('<ol class="findings">')
    assert status.value[1:] in html[notice : notice + 200]
    assert "the fit has no covariance" in html


def test_a_published_law_says_what_it_lacks(undrawn, tmp_path):
    result = report.write_fit("chinchilla-epoch", tmp_path)
    assert result.figures == ("law", "iso-loss", "plan-frontier", "plan-allocation", "tokens-per-param")
    html = result.path.read_text("utf-8")
    assert "this fit carries no rows" in html
    assert "Besiroglu et al. 2024" in html


def test_a_bootstrap_and_a_lack_of_fit_are_told(undrawn, tmp_path):
    x, loss = fitted.runs_of("power-floor", seeds=3)
    law_fit = fit("power-floor", x, loss, bootstrap=100, intervals="bootstrap")
    html = fit_page.write(law_fit, tmp_path).path.read_text("utf-8")
    solution = {row[0]: row[1] for row in rows_after(html, "The solution")}
    assert solution["Bootstrap"].startswith(f"100 resamples of {law_fit.bootstrap.unit}")
    assert solution["Cold-start check of refits"].startswith(f"{law_fit.bootstrap.agreeing} of ")
    assert solution["Lack of fit, p of the F test"] == f"{law_fit.seeds.p:.2g}"
    assert "90% bootstrap intervals" in html


def test_wrong_sources_and_places_are_input_errors(tmp_path):
    (tmp_path / "no.json").write_text("[1", "utf-8")
    (tmp_path / "file").write_text("", "utf-8")
    for source, out in (
        (tmp_path / "absent.json", None),
        (tmp_path / "no.json", None),
        (fitted.fitted("power"), None),
        (fitted.fitted("power"), tmp_path / "file"),
    ):
        with pytest.raises(InputError):
            report.write_fit(source, out)
    assert {one.name for one in tmp_path.iterdir()} == {"no.json", "file"}
