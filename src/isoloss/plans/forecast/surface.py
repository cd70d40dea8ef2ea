"""The kriged loss over N and D, and draws of it: where compute is best spent when no law is chosen."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isoloss import text
from isoloss.errors import Refusal
from isoloss.laws import Array, Interval, together_refusal
from isoloss.plans.forecast.kriging import Choice, Kriged, near
from isoloss.plans.forecast.runs import LogRuns
from isoloss.plans.loss_surface import LossSurface, Rows

_FAR = np.log(1000.0)  # outside the runs; farther out the kriged error stands still
_WIDEST = 1e4  # an interval of a best size by a larger factor is no answer
_MEND = "add runs of other tokens per parameter, or plan by a law"
_WAVES = 32
_AT_ONCE = 20_000  # points, for memory


@dataclass(frozen=True)
class _Error:
    """What the residuals add to a law, in S versions: in its parameters, in the smooth error by its pull at
    the runs, and in waves that the runs leave open."""

    move_Sp: Array
    pull_Sn: Array
    length_S: Array
    wave_SIm: Array
    phase_Sm: Array
    height_Sm: Array

    def at(self, law: Kriged, s_q: Rows, at_Iq: Array) -> Array:
        """Of version ``s_q`` at each point, (q,)."""
        smooth_qn = near(at_Iq, law.z_In, self.length_S[s_q, None])
        angle_qm = np.einsum("iq,qim->qm", at_Iq, self.wave_SIm[s_q]) + self.phase_Sm[s_q]
        return (
            np.einsum("qp,qp->q", law.fit.value(at_Iq)[1], self.move_Sp[s_q])
            + np.einsum("qn,qn->q", smooth_qn, self.pull_Sn[s_q])
            + np.einsum("qm,qm->q", np.cos(angle_qm), self.height_Sm[s_q])
        )


def forecast_surface(runs: LogRuns, laws: tuple[Kriged, ...], draws: int, seed: int) -> LossSurface:
    """Row 0 is the mean over ``laws``, the other rows are ``draws``, each of one law, in turn.

    A draw has its law's parameters from their posterior, and a smooth error given the residuals (Matheron's
    rule, with random waves for the prior: Wilson et al. 2020, arXiv 2002.09309).
    """
    rng = np.random.default_rng(seed)
    low_I, high_I = runs.z_In.min(axis=1)[:, None] - _FAR, runs.z_In.max(axis=1)[:, None] + _FAR
    errors = [_drawn(law, -(-draws // len(laws)), rng) for law in laws]

    def log_losses(rows_q: Rows, z_Iq: Array) -> Array:
        near_Iq = np.clip(z_Iq, low_I, high_I)
        version, each = np.divmod(rows_q - 1, len(laws))
        out = np.zeros(len(rows_q))
        for b, law in enumerate(laws):
            mean_q, own_q = rows_q == 0, (rows_q > 0) & (each == b)
            if mean_q.any():
                out[mean_q] += law.fit.value(z_Iq[:, mean_q])[0] / len(laws)
                out[mean_q] += law.error(near_Iq[:, mean_q]) / len(laws)
            if own_q.any():
                out[own_q] = law.fit.value(z_Iq[:, own_q])[0]
                out[own_q] += errors[b].at(law, version[own_q], near_Iq[:, own_q])
        return out

    def losses(rows: Rows, log_n: Array, log_d: Array) -> Array:
        z_Iq = np.stack([log_n.ravel(), log_d.ravel()]) - runs.middle_I[:, None]
        starts = range(0, rows.size, _AT_ONCE)
        parts = [log_losses(rows.ravel()[i : i + _AT_ONCE], z_Iq[:, i : i + _AT_ONCE]) for i in starts]
        return np.exp(np.concatenate(parts) + runs.middle_loss).reshape(rows.shape)

    return LossSurface(losses, np.zeros(draws + 1, dtype=bool))


def check_best(
    runs: LogRuns, log_sizes: Mapping[str, float], intervals: Mapping[str, Interval | None]
) -> None:
    """Refuse best sizes, of params and tokens, that the runs do not tell.

    Asked is of those that have an interval, since they follow from the runs.
    """
    free = [name for name in runs.names if name in intervals]
    if len(free) == len(runs.names) and runs.on_one_line:
        raise together_refusal(free)
    for name in free:
        low, high = intervals[name] or (1.0, 1.0)
        if low is None or high is None or high > _WIDEST * low:
            ends = text.interval((low or 1.0, np.inf if high is None else high), text.count)
            raise Refusal(f"the runs do not tell how many {name} are best ({ends})", mend=_MEND)
        index = runs.names.index(name)
        if abs(log_sizes[name] - runs.middle_I[index]) > np.ptp(runs.z_In[index]) / 2 + _FAR:
            best, times = text.count(np.exp(log_sizes[name])), f"{np.exp(_FAR):,.0f} times"
            what = f"the best {name}, {best}, lie over {times} outside the runs"
            raise Refusal(what, mend="ask nearer to the runs, or plan by a law")


def _drawn(law: Kriged, draws: int, rng: np.random.Generator) -> _Error:
    shares = np.array([choice.share for choice in law.choices])
    chosen = rng.choice(len(shares), size=draws, p=shares / shares.sum())
    each = [_draw(law, law.choices[index], rng) for index in chosen]
    return _Error(*(np.array(column) for column in zip(*each, strict=True)))


def _draw(law: Kriged, choice: Choice, rng: np.random.Generator) -> tuple[Array | float, ...]:
    inputs, size = law.z_In.shape
    away_p = choice.root_pp @ rng.standard_normal(len(choice.move_p))
    wave_Im = rng.standard_normal((inputs, _WAVES)) / choice.length
    phase_m = rng.uniform(0, 2 * np.pi, _WAVES)
    height_m = choice.tau * np.sqrt(2 / _WAVES) * rng.standard_normal(_WAVES)
    # What these, and a draw of the noise, leave of the residuals pulls the draw to the runs.
    smooth_n = choice.white_nn @ (np.cos(law.z_In.T @ wave_Im + phase_m) @ height_m)
    left_n = choice.left_n - choice.slope_np @ away_p - smooth_n - choice.noise_n * rng.standard_normal(size)
    return choice.move_p + away_p, choice.pull(left_n), choice.length, wave_Im, phase_m, height_m
