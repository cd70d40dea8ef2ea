import re
from dataclasses import replace

import numpy as np
import pytest
import story
import telling

from isoloss import text
from isoloss.analysis.findings import LEFT_OUT, findings
from isoloss.analysis.study import analyse
from isoloss.records import load
from isoloss.report.sections import sections


def by_key(study):
    return {finding.key: finding for finding in findings(study) if finding.key != LEFT_OUT}


@pytest.fixture(scope="module")
def ahead_findings(ahead):
    return by_key(ahead)


@pytest.fixture(scope="module")
def inside_findings(inside):
    return by_key(inside)


def test_the_findings_are_those_that_the_study_planned_in_order(ahead, told):
    assert [finding.key for finding in findings(ahead)] == [
        "gap",
        "families",
        "positions",
        "loops",
        "left-out",
    ]
    assert [finding.key for finding in findings(told(story.FEW))] == ["gap", "families", "positions"]
    only = replace(story.LSTM_AHEAD, transformer_widths=(), lstm_widths=(), hostile=False)
    assert [finding.key for finding in findings(told(only))] == ["loops"]


def test_the_families_sentence_follows_the_story(ahead_findings, inside_findings):
    ahead, inside = (
        study_findings["families"].sentence for study_findings in (ahead_findings, inside_findings)
    )
    assert "LSTM is ahead at every size compared" in ahead
    assert "Transformer is ahead" not in ahead
    assert "outside the data" in " ".join(ahead_findings["families"].caveats)
    match = re.search(r"cross at N = \S+ \((\d+)K to (\d+)K\)\. Below it the LSTM is ahead", inside)
    assert 1000 * int(match[1]) < story.CROSSES_INSIDE.crossing < 1000 * int(match[2])
    assert inside.endswith("above it the Transformer.")
    caveats = " ".join(inside_findings["families"].caveats)
    assert "the Transformer at others (N = 301K to 960K)" in caveats
    assert "cross inside the data" in caveats


def test_the_families_turned_round_turn_the_sentence(told):
    few = story.FEW
    turned = replace(
        few, transformer=replace(few.transformer, at_10k=3.6), lstm=replace(few.lstm, at_10k=4.4)
    )
    sentence = by_key(told(turned))["families"].sentence
    assert "the Transformer is ahead at every" in sentence
    assert "LSTM is ahead" not in sentence


def test_equal_families_are_not_said_to_differ(told):
    """Both families obey one law, under noise: no size may be called for more than a twentieth."""
    few = story.FEW
    same = replace(few, lstm=few.transformer, noise=0.05)
    sentence = by_key(told(same))["families"].sentence
    assert "neither is ahead" in sentence
    assert not re.search(r"the (Transformer|1-layer LSTM) is ahead at every", sentence)


def test_the_position_sentence_says_who_gains_and_who_is_flat(ahead_findings):
    finding = ahead_findings["positions"]
    assert "the Transformer gains" in finding.sentence
    assert re.search(r"layer LSTM 92\dK gains next to nothing after token 64", " ".join(finding.caveats))
    assert "Transformer 960K still gains at tokens 65–128" in " ".join(finding.caveats)
    assert finding.numbers["stops"] == {"transformer": None, "lstm": 64}


def test_two_models_that_use_context_alike_are_one_sentence(told):
    law = replace(story.FEW.lstm, p=0.5, plateau=story.CONTEXT)
    caveats = by_key(told(replace(story.FEW, lstm=law)))["positions"].caveats
    assert re.fullmatch(
        r"Transformer 960K and 1-layer LSTM \d+K: each still gains at tokens 65–128\.", caveats[0]
    )


def test_a_family_of_a_user_is_set_against_every_other_and_judged(told):
    one = replace(story.FEW, gated_widths=(20, 40, 64, 112, 200))
    study_findings = by_key(told(one))
    pairs = ["", "-transformer-gated", "-lstm-gated"]
    assert list(study_findings) == [
        f"{key}{pair}" for pair in pairs for key in ("gap", "families", "positions")
    ]
    assert "the gated model is ahead at every size" in study_findings["families-transformer-gated"].sentence
    assert "is ahead" in study_findings["families-lstm-gated"].sentence
    assert "the Transformer gains" in study_findings["positions-transformer-gated"].sentence
    assert "The gated model's mean lead" in study_findings["gap-transformer-gated"].sentence
    names = {figure.name for part in sections(analyse(told(one))) for figure in part.figures}
    assert {f"{name}{pair}" for pair in pairs for name in ("gap-by-tokens", "loss-by-position")} < names


def test_the_loop_sentence_sets_the_entropy_bonus_apart(ahead_findings):
    finding = ahead_findings["loops"]
    share = finding.numbers["entropy_bonus"] / -finding.numbers["total"]["value"]
    assert 0.3 < share < 0.6
    caveats = " ".join(finding.caveats)
    assert f"The objective falls by {100 * share:.2g}% because of its entropy term" in caveats
    assert "prediction itself improves too" in caveats


def test_a_fall_that_is_all_bonus_is_called_so(told):
    loops = replace(story.LoopLaw(), C=0.13, entropy_weight=0.2)
    few = replace(story.FEW, transformer_widths=(), lstm_widths=(), loops=(1, 2, 4), looped=loops)
    caveats = " ".join(by_key(told(few))["loops"].caveats)
    assert "falls only because of its entropy term" in caveats
    assert re.search(r"prediction itself (gets worse|is not shown to improve)", caveats)


def formatted(number):
    return {f"{number:+.3f}".replace("-", "−"), f"{abs(number):.3f}", f"{100 * number:.2g}%"}


def test_every_difference_in_a_sentence_is_one_of_its_numbers(ahead_findings, inside_findings):
    """No typed number: each signed value in a sentence is a rounded entry of ``numbers``."""
    for finding in [*ahead_findings.values(), *inside_findings.values()]:
        known = set()
        for value in flat(finding.numbers):
            known |= formatted(value) | {text.count(value)}
        nats = re.findall(r"[+−]?\d+\.\d{3}|[\d.]+K", finding.sentence)
        assert nats
        assert all(number in known or number.lstrip("+−") in known for number in nats), finding.key


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for item in value for number in flat(item)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_every_verdict_comes_with_an_interval(ahead_findings, inside_findings):
    for finding in [*ahead_findings.values(), *inside_findings.values()]:
        assert re.search(r"\([+−]?[\d.]+[KM]? to [+−]?[\d.]+[KM]?\)", finding.sentence), finding.key


def test_one_seed_refuses_every_verdict(told):
    few = replace(story.LSTM_AHEAD, seeds=1, hostile=False)
    for finding in findings(told(few)):
        if finding.key == "positions":
            assert any("for one pair of runs" in caveat for caveat in finding.caveats)
            continue
        assert "no verdict" in finding.sentence.lower(), finding.key
        assert "two seeds" in finding.sentence
        assert not re.search(r"\bis ahead\b|gains more|lowers", finding.sentence)


@pytest.mark.parametrize(
    ("missing", "key"),
    [
        ("lstm", "gap"),
        ("lstm", "families"),
        ("lstm", "positions"),
        ("transformer", "families"),
        ("looped", "loops"),
    ],
)
def test_a_family_that_was_planned_and_is_missing_is_named_and_what_would_answer(tmp_path, missing, key):
    few = replace(story.FEW, transformer_widths=(20, 40), lstm_widths=((1, (36, 72)),), loops=(1, 2))
    runs = story.planned(few)
    for run in runs:
        if run["settings"]["family"] != missing:
            telling.write_run(tmp_path, "some", few, run, np.random.default_rng(0))
    telling.write_plan(tmp_path, "some", "Some", runs)
    finding = by_key(load(tmp_path))[key]
    assert finding.sentence.startswith("Not answered")
    assert f"no finished {missing} run" in finding.sentence
    assert "add " in finding.sentence


@pytest.mark.parametrize(
    ("left_out", "keys"), [({"lstm_widths": ()}, ["context"]), ({"transformer_widths": ()}, ["size"])]
)
def test_no_finding_speaks_of_a_family_that_was_never_planned(told, left_out, keys):
    assert [finding.key for finding in findings(told(replace(story.FEW, **left_out)))] == keys


@pytest.mark.parametrize(
    ("exponent", "words"),
    [(0.05, "falls 0."), (-0.05, "rises 1."), (0.0, "No change of the loss of the 1-layer LSTM")],
)
def test_a_study_of_one_family_says_what_size_buys(told, exponent, words):
    alone = replace(story.FEW, transformer_widths=(), lstm=replace(story.FEW.lstm, a=exponent))
    (finding,) = findings(told(alone))
    assert words in finding.sentence
    small, large = finding.numbers["params"]
    law, tokens = alone.lstm, story.D_POINTS[-1]
    low, high = finding.numbers["fall"]["interval"]
    assert low < law.loss(small, tokens) - law.loss(large, tokens) < high
    (silent,) = findings(told(replace(alone, seeds=1)))
    assert silent.sentence.startswith("No verdict")


def test_two_sizes_give_gaps_but_no_crossover(told):
    few = replace(story.FEW, transformer_widths=(64, 112), lstm_widths=((1, (72, 140)),))
    finding = by_key(told(few))["families"]
    assert "is ahead at" in finding.sentence
    assert "refused" in " ".join(finding.caveats)


def test_nothing_finished_is_said(told):
    for finding in findings(told(replace(story.FEW, finished=False))):
        assert "no run has finished" in finding.sentence


def test_rates_chosen_by_their_outcome_are_a_caveat(told, tmp_path):
    few = replace(story.FEW, transformer_widths=(20, 40), lstm_widths=((1, (36, 72)),))
    assert not any(
        "learning rates" in caveat for finding in findings(told(few)) for caveat in finding.caveats
    )
    runs = story.planned(few)
    for run in runs:
        run["settings"]["learning_rate"] *= 1 + run["settings"]["seed"]
    folder = tmp_path / "swept"
    for number, run in enumerate(runs):
        telling.write_run(folder, "swept", few, run, np.random.default_rng(number))
    telling.write_plan(folder, "swept", "Swept", runs)
    finding = by_key(load(folder))["families"]
    assert "4 sizes were trained at several learning rates" in finding.caveats[-1]
    assert "no verdict" in finding.sentence
