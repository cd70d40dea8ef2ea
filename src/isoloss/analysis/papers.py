"""What papers found whose figures a study repeats, where its runs agree or contradict them."""

from isoloss.analysis.by_params import FamilyPair
from isoloss.analysis.by_position import FamilyPositions, Use
from isoloss.analysis.loops import LoopedStudy
from isoloss.analysis.shape import ASPECT, Shapes
from isoloss.errors import Refusal

KAPLAN = "Kaplan et al. 2020"
OURO = "Ouro (arXiv 2510.25741)"
PAIR = ("transformer", "lstm")
WIDE, NEAR = 5.0, 0.03
"""Aspect ratios that span so much are compared with the share of loss that the paper found."""


def on_size(pair: FamilyPair) -> str:
    """Their Fig. 7, left: the Transformer is ahead. Empty where the study cannot say."""
    signs = [gap.difference.sign for gap in pair.headline_gaps]
    if (pair.versus.reference, pair.versus.rival) != PAIR or not any(signs):
        return ""
    if 1 in signs:
        return (
            f"This contradicts Fig. 7 of {KAPLAN}, where the Transformer is ahead: its runs are far longer, "
            "on far more text."
        )
    return f"So it is in Fig. 7 of {KAPLAN}."


def on_position(data: FamilyPositions) -> str:
    """Their Fig. 7, right: LSTMs gain little after 100 tokens, Transformers through all 1,024."""
    if (data.versus.reference, data.versus.rival) != PAIR:
        return ""
    largest = data.pairs[-1].reference
    if largest.context_use.use is Use.UNSURE:
        return ""
    verdict = "So it is here" if largest.context_use.use is Use.GAINS else "Here they do not"
    return f"In Fig. 7 of {KAPLAN} Transformers gain through all their 1,024 tokens. {verdict}."


def on_shape(data: Shapes) -> str:
    """Their Fig. 5: over a 40-fold range of d_model / n_layer the loss stays within 3% of the best."""
    wide = [
        curve
        for curve in data.curves
        if curve.panel == ASPECT
        and curve.rows["x"][-1] >= WIDE * curve.rows["x"][0]
        and curve.flat is not None
    ]
    if not wide:
        return ""
    worse = any(low is not None and low > NEAR for curve in wide for low in curve.rows["low"])
    verdict = "This contradicts it" if worse else "So it is here"
    return f"In Fig. 5 of {KAPLAN} loss stays within 3% over a 40-fold range of d_model / n_layer. {verdict}."


def on_loops(data: LoopedStudy) -> str:
    """Its law of total loss, E + A/N^alpha + B/D^beta + C/T_m^gamma with C above 0, falls as T_m grows."""
    most = data.mean_gains[-1] if data.mean_gains else None
    if most is None or isinstance(data.noise, Refusal) or not most.total.sign:
        return ""
    higher = most.total.sign > 0
    verdict = "This contradicts it" if higher else "So it is here"
    level = f"with {most.loops} loops it is {'higher' if higher else 'lower'} than with one"
    if not higher and most.last_exit.sign != -1:
        level += ", by its entropy term alone"
    return f"In the law of {OURO} total loss falls as T_m grows. {verdict}: {level}."
