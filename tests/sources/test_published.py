"""Published laws against the numbers that follow from what their papers print."""

import json
import math

import numpy as np
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.laws import Fit, FitStatus
from isoloss.sources.published import names, published, unpublished

# Kaplan et al. 2020: L at N (or N with D, S), from the constants of its own table, to four digits.
KAPLAN_N = {
    768: 6.926, 1e5: 4.784, 4e5: 4.306, 1e6: 4.016, 2e6: 3.810, 3e6: 3.694, 1e7: 3.371, 1e8: 2.830,
    2e8: 2.685, 3e8: 2.603, 1e9: 2.376, 1.5e9: 2.304,
}  # fmt: skip
KAPLAN_ND = {(1e6, 1e8): 4.0313, (1e8, 1e9): 2.9567, (1e9, 2.2e10): 2.3693}
KAPLAN_NS = {(1e6, 1e4): 4.3011, (1e8, 1e4): 3.1082}
# Means of a + b T^-p over T = 1..1024, and the losses at T = 1, 10, 100, 1024.
CONTEXT = [
    (4.228, 7.20, 5.08, 4.37, 4.12),
    (3.581, 7.40, 4.50, 3.70, 3.48),
    (3.103, 7.40, 4.14, 3.24, 2.99),
    (2.882, 7.60, 3.93, 3.01, 2.78),
    (2.581, 7.50, 3.65, 2.71, 2.47),
    (2.482, 7.70, 3.60, 2.61, 2.37),
]
# N, D, D / N and L at 1e21 and 5.76e23 FLOP with C = 6 N D, and the exponent a and factor G of N_opt.
PLANS = {
    "chinchilla-rounded": (
        *(0.4516, 1.345),
        (1.824e9, 9.136e10, 50.1, 2.329),
        (3.219e10, 2.982e12, 92.7, 1.931),
    ),
    "chinchilla": (*(0.4565, 1.300), (2.217e9, 7.517e10, 33.9, 2.295), (4.036e10, 2.378e12, 58.9, 1.918)),
    "chinchilla-epoch": (
        *(0.5126, 0.1196),
        (2.778e9, 5.999e10, 21.6, 2.305),
        (7.225e10, 1.329e12, 18.4, 1.974),
    ),
}


def test_kaplans_line_over_parameters():
    law = published("kaplan-n")
    losses = law.predict(params=list(KAPLAN_N)).loss
    np.testing.assert_allclose(losses, list(KAPLAN_N.values()), atol=5.1e-4)
    # Doubling N multiplies the loss by 0.949. Negative control: another table's N_c misses the digits.
    assert law.predict(params=2e6).loss / law.predict(params=1e6).loss == pytest.approx(0.949, abs=5e-4)
    other_params = published("kaplan-nd").params
    assert abs((other_params["Nc"] / 1e6) ** other_params["aN"] - KAPLAN_N[1e6]) > 0.05


def test_kaplans_laws_with_tokens_and_with_steps():
    for (size, tokens), loss in KAPLAN_ND.items():
        assert published("kaplan-nd").predict(params=size, tokens=tokens).loss == pytest.approx(
            loss, abs=6e-5
        )
    for (size, steps), loss in KAPLAN_NS.items():
        # S_min = S where the batch is far above the critical one.
        prediction = published("kaplan-ns").predict(params=size, steps=steps, batch_tokens=1e15)
        assert prediction.loss == pytest.approx(loss, abs=6e-5)
        assert prediction.extrapolation["batch_tokens"] > 1e6


@pytest.mark.parametrize("number", range(6))
def test_kaplans_curves_over_the_context(number):
    mean, *losses = CONTEXT[number]
    law = published(f"kaplan-context-{number + 1}")
    loss = law.predict(position=np.arange(1.0, 1025)).loss
    assert loss.mean() == pytest.approx(mean, abs=6e-4)
    np.testing.assert_allclose(law.predict(position=[1, 10, 100, 1024]).loss, losses, atol=5.1e-3)
    # Negative control: the last position is not the mean.
    assert abs(law.predict(position=1024).loss - mean) > 0.05


@pytest.mark.parametrize("name", PLANS)
def test_what_each_reading_of_chinchilla_plans(name):
    a, G, *plans = PLANS[name]
    law = published(name)
    # The plans of Epoch's law come from constants of four digits.
    close = 2e-3 if name == "chinchilla-epoch" else 3e-4
    assert law.allocation()["a"] == pytest.approx(a, abs=max(close / 10, 6e-5))
    p = law.params
    factor = (p["alpha"] * p["A"] / (p["beta"] * p["B"])) ** (1 / (p["alpha"] + p["beta"]))
    assert factor == pytest.approx(G, rel=max(close, 5e-4))
    for flops, (size, tokens, ratio, loss) in zip((1e21, 5.76e23), plans, strict=True):
        best = factor * (flops / 6) ** law.allocation()["a"]
        assert best == pytest.approx(size, rel=close)
        assert flops / 6 / best == pytest.approx(tokens, rel=close)
        assert flops / 6 / best**2 == pytest.approx(ratio, abs=0.06, rel=2 * close)
        assert law.predict(params=best, tokens=flops / 6 / best).loss == pytest.approx(loss, abs=2 * close)


def test_rounded_constants_warn_and_cost_what_the_warning_says():
    rounded, exact = published("chinchilla-rounded"), published("chinchilla")
    warnings = [text for text in rounded.predict(params=1e9, tokens=2e10).warnings if "two-digit" in text]
    assert warnings
    assert "+0.045" in warnings[0]
    assert not any("two-digit" in text for text in exact.warnings)
    at = {"params": 7e10, "tokens": 1.4e12}
    assert rounded.predict(**at).loss - exact.predict(**at).loss > 0.01


def test_unrounded_logs_are_the_constants():
    law = published("chinchilla")
    assert law.params["A"] == pytest.approx(math.exp(6.0073404), rel=1e-12)
    assert law.params["E"] == pytest.approx(1.6934, abs=5e-5)
    assert published("muennighoff").params["B"] == pytest.approx(1488, abs=0.5)


def test_epochs_errors_are_the_papers():
    law = published("chinchilla-epoch")
    assert law.standard_errors == {"E": 0.02566, "A": 124.52, "alpha": 0.0154, "B": 1293.28, "beta": 0.0206}
    assert law.n == 240
    assert all(low < law.params[name] < high for name, (low, high) in law.intervals.items())
    prediction = law.predict(params=7e10, tokens=1.4e12)
    # E + 482.01 / 7e10^.34781 + 2085.43 / 1.4e12^.36585, by logarithms: 1.81686 + 0.08147 + 0.07508.
    assert prediction.loss == pytest.approx(1.97341, abs=2e-5)
    assert prediction.interval is None
    assert any("no interval" in text for text in prediction.warnings)


def test_repeated_data_lose_their_worth():
    """D' / D at e epochs: 1.000, 0.984, 0.931, 0.828, 0.661, 0.448, 0.252 at 1, 2, 4, 8, 16, 32, 64."""
    law = published("muennighoff")
    p, unique = law.params, 1e9
    for epochs, worth in {1: 1.0, 2: 0.984, 4: 0.931, 8: 0.828, 16: 0.661, 32: 0.448, 64: 0.252}.items():
        loss = law.predict(params=1e7, tokens=epochs * unique, unique_tokens=unique).loss
        rest = p["E"] + p["A"] * 1e7 ** -p["alpha"]
        effective = (p["B"] / (loss - rest)) ** (1 / p["beta"])
        assert effective / (epochs * unique) == pytest.approx(worth, abs=6e-4)


@pytest.mark.parametrize("name", names())
def test_each_is_a_fit_that_predicts_cites_and_survives_json(name):
    law = published(name)
    assert law.status is FitStatus.PUBLISHED
    assert "arXiv" in law.source["citation"]
    assert law.source["counts"]
    assert Fit.from_json(json.loads(json.dumps(law.to_json(), allow_nan=False))) == law
    at = {key: math.sqrt(low * high) for key, (low, high) in law.ranges.items()}
    at |= {key: 1e9 for key in law.form.inputs if key not in at}
    prediction = law.predict(**at)
    assert math.isfinite(prediction.loss)
    assert prediction.loss > 0
    assert prediction.interval is None
    assert FitStatus.PUBLISHED.value in prediction.warnings
    assert law.formula()


@pytest.mark.parametrize(("name", "why"), [("ouro", "no constant"), ("iso-depth", "omits A and B")])
def test_what_is_not_published_is_refused_with_the_reason(name, why):
    assert name in unpublished()
    assert name not in names()
    with pytest.raises(Refusal, match=why) as refused:
        published(name)
    assert "runs of your own" in refused.value.mend


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(InputError, match="'chinchila'") as caught:
        published("chinchila")
    assert all(name in caught.value.mend for name in names())
