"""Where the laws a + b T^-p of all sizes lie off their curves together: the form is wrong there."""

from collections.abc import Sequence

import numpy as np

from isoloss import text
from isoloss.analysis.contexts import ContextSize
from isoloss.analysis.fit_rows import law_at


def misses_words(sizes: Sequence[ContextSize]) -> str:
    """Between which T all laws lie on one side of their curves, and by how much; empty without a law.

    Around the T at which they do so most, on average over sizes.
    """
    laws = [(size.curve, law) for size in sizes if (law := size.known)]
    if not laws:
        return ""
    off_ZG = np.array(
        [law_at(law, {"position": curve["position"].to_numpy()}) - curve["loss"] for curve, law in laws]
    )
    worst = int(np.argmax(np.abs(off_ZG.mean(axis=0))))
    sign = np.sign(off_ZG[0, worst])
    alike_G = np.all(np.sign(off_ZG) == sign, axis=0)
    if not alike_G[worst]:
        return f"The laws miss their curves by up to {most(off_ZG)}"
    start, end = worst, worst
    while start and alike_G[start - 1]:
        start -= 1
    while end + 1 < len(alike_G) and alike_G[end + 1]:
        end += 1
    curve = laws[0][0]
    where = text.interval((curve["first"][start], curve["last"][end]), lambda T: f"{T:.0f}")
    side = "above" if sign > 0 else "below"
    words = f"At T = {where} {'all laws lie' if len(laws) > 1 else 'the law lies'} {side} the measured loss"
    later = off_ZG[:, end + 1 :]
    after = f". Later the miss is at most {most(later)}" if later.size else ""
    return f"{words}, by up to {most(off_ZG[:, start : end + 1])}{after}"


def most(off_ZG: np.ndarray) -> str:
    return f"{text.loss(float(np.abs(off_ZG).max()))} nats"
