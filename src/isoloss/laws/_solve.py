"""Find the optimum of a model, from several starts at once, and say how sure that is."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from isoloss.errors import Refusal
from isoloss.laws._scaled import ScaledForm
from isoloss.laws.forms import Array

OBJECTIVES = ("squared", "squared-log", "huber-log", "huber-likelihood")
_MOST_STEPS = 100
_SHARPENED = 3
_AROUND, _ROUNDS = 16, 4  # restarts around the best optimum, for a deeper one
SMALL_GRADIENT = 1e-6
_RANKED, _DESCENDED = 250, 500  # points that rank the starts, and that they go down on first
_ROUGHLY = 1e-4  # of the objective of a part: the whole goes on from there, no cold start any more
_EVALUATED_TO = 8 * np.finfo(float).eps  # a sum of a few exponentials, its logarithm, and that of the loss


@dataclass(frozen=True)
class Problem:
    """Losses y_n, weights w_n of mean 1, and what is summed.

    Both may have a row a start, shape (S, n): then S data sets on the same inputs are solved at once.
    """

    model: ScaledForm
    y_n: Array
    w_n: Array
    objective: str
    delta: float

    def take(self, keep_S: NDArray[np.bool_]) -> "Problem":
        """The problem of some of the starts."""
        return replace(
            self,
            model=self.model.take(keep_S),
            y_n=self.y_n if self.y_n.ndim == 1 else self.y_n[keep_S],
            w_n=self.w_n if self.w_n.ndim == 1 else self.w_n[keep_S],
        )

    def sample(self, most: int) -> "Problem":
        """The problem of so many points where there are more, to find the way to the optimum."""
        if len(self.w_n) <= most:
            return self
        some = np.sort(np.random.default_rng(0).permutation(len(self.w_n))[:most])
        model = replace(self.model, z_In=self.model.z_In[:, some])
        return replace(self, model=model, y_n=self.y_n[some], w_n=self.w_n[some])

    def residuals(self, phi: Array) -> Array:
        """Fitted minus observed, shape (..., n)."""
        return self.missed(self.model.value(phi))

    def missed(self, fitted: Array) -> Array:
        """The residuals of fitted losses."""
        if self.objective == "squared":
            return fitted - self.y_n
        return np.log(np.maximum(fitted, 1e-300)) - self._log_y_n

    @cached_property
    def _log_y_n(self) -> Array:
        return np.log(self.y_n)

    def jacobian(self, phi: Array, fitted: Array | None = None) -> Array:
        """Derivative of the residuals, shape (..., n, F); ``fitted``: the losses at ``phi``, if known."""
        gradient = self.model.gradient(phi)
        if self.objective == "squared":
            return gradient
        fitted = self.model.value(phi) if fitted is None else fitted
        return gradient / np.maximum(fitted, 1e-300)[..., None]

    def weighted_residuals(self, phi: Array) -> Array:
        """Times the root of the weights: what least squares squares."""
        return np.sqrt(self.w_n) * self.residuals(phi)

    def weighted_jacobian(self, phi: Array) -> Array:
        return np.sqrt(self.w_n)[..., None] * self.jacobian(phi)

    def pull(self, r_n: Array) -> Array:
        """psi, the derivative of the summed function of a residual."""
        return np.clip(r_n, -self.delta, self.delta) if self.objective == "huber-log" else r_n

    def total(self, r_n: Array) -> Array:
        """Half the sum of squares, or the sum of Huber's function, over the last axis; weights are inside."""
        if self.objective != "huber-log":
            return (0.5 * r_n * r_n * self.w_n).sum(axis=-1)
        size = np.abs(r_n)
        rho = np.where(size <= self.delta, 0.5 * r_n**2, self.delta * (size - 0.5 * self.delta))
        return (rho * self.w_n).sum(axis=-1)


@dataclass(frozen=True)
class Optimum:
    """``gradient`` is the largest cosine left; ``stationary``: it is 0 as far as can be told."""

    phi: Array
    total: float
    gradient: float
    stationary: bool
    tried: int
    agreeing: int


def descend(problem: Problem, phi_SF: Array, *, tolerance: float = 1e-10, bound: float = np.inf) -> Array:
    """Levenberg-Marquardt from S starts at once, until a step promises less than ``tolerance`` of the total.

    A start also ends where ``_MOST_STEPS`` more steps such as its last would not bring it below ``bound``.

    Huber's delta narrows from the largest residual down: near the end its function is almost an absolute
    value, where a cold start crawls.
    """
    if problem.objective == "huber-log":
        widest = float(np.max(np.abs(problem.residuals(phi_SF))))
        delta = problem.delta * 10.0 ** np.ceil(np.log10(max(widest / problem.delta, 1.0)))
        while delta > problem.delta:
            # Of its sum over a wider delta Huber's is at least the share that the deltas have.
            wider = bound * delta / problem.delta
            phi_SF = _descend(replace(problem, delta=delta), phi_SF, max(tolerance, 1e-6), wider)
            delta = max(delta / 10.0, problem.delta)
    return _descend(problem, phi_SF, tolerance, bound)


def _descend(problem: Problem, phi_SF: Array, tolerance: float, bound: float = np.inf) -> Array:
    out_SF, start_S = np.array(phi_SF), np.arange(len(phi_SF))
    fitted_Sn = problem.model.value(phi_SF)
    r_Sn = problem.missed(fitted_Sn)
    total_S = problem.total(r_Sn)
    damping_S = np.full(len(phi_SF), 1e-3)
    for _ in range(_MOST_STEPS):
        jacobian_SnF = problem.jacobian(phi_SF, fitted_Sn)
        step_SF, promise_S = _step(problem, phi_SF, r_Sn, jacobian_SnF, damping_S)
        # Done: the step promises less than the rounding of the objective, or no step helps any more.
        done_S = (promise_S <= tolerance * total_S + 1e-30) | (damping_S > 1e10)
        done_S |= _MOST_STEPS * promise_S < total_S - bound
        if done_S.sum() > 0.3 * len(done_S):
            out_SF[start_S[done_S]] = phi_SF[done_S]
            rest = ~done_S
            if not rest.any():
                return out_SF
            problem, start_S = problem.take(rest), start_S[rest]
            phi_SF, fitted_Sn, r_Sn, total_S, damping_S, step_SF = (
                part[rest] for part in (phi_SF, fitted_Sn, r_Sn, total_S, damping_S, step_SF)
            )
        trial_SF = phi_SF + step_SF
        trial_fitted_Sn = problem.model.value(trial_SF)
        trial_r_Sn = problem.missed(trial_fitted_Sn)
        trial_total_S = problem.total(trial_r_Sn)
        better_S = trial_total_S <= total_S
        phi_SF = np.where(better_S[:, None], trial_SF, phi_SF)
        fitted_Sn = np.where(better_S[:, None], trial_fitted_Sn, fitted_Sn)
        r_Sn = np.where(better_S[:, None], trial_r_Sn, r_Sn)
        total_S = np.where(better_S, trial_total_S, total_S)
        damping_S = np.where(better_S, np.maximum(damping_S / 5, 1e-12), damping_S * 4)
    out_SF[start_S] = phi_SF
    return out_SF


def _step(
    problem: Problem, phi_SF: Array, r_Sn: Array, jacobian_SnF: Array, damping_S: Array
) -> tuple[Array, Array]:
    weighted_SnF = jacobian_SnF * problem.w_n[..., None]
    gradient_SF = (problem.pull(r_Sn)[:, None, :] @ weighted_SnF)[:, 0]
    length_SF = np.maximum(np.einsum("snf,snf->sf", jacobian_SnF, weighted_SnF), 1e-30)
    if problem.objective == "huber-log":
        weighted_SnF = weighted_SnF * (np.abs(r_Sn) <= problem.delta)[..., None]
    hessian_SFF = weighted_SnF.transpose(0, 2, 1) @ jacobian_SnF
    np.einsum("sff->sf", hessian_SFF)[...] += damping_S[:, None] * length_SF + 1e-30
    # A step of 2 is a factor of 7 for a logarithm; a parameter of either sign may be of any size.
    far_SF = 2.0 + np.where(problem.model.signed_F, np.abs(phi_SF), 0.0)
    step_SF = np.clip(np.linalg.solve(hessian_SFF, -gradient_SF[..., None])[..., 0], -far_SF, far_SF)
    return step_SF, np.abs((gradient_SF * step_SF).sum(axis=1))


def sharpen(problem: Problem, phi: Array) -> Array:
    """The last digits of an optimum; of least squares by MINPACK: QR does not square the condition number."""
    if not len(phi):
        return phi
    if problem.objective == "huber-log":
        return _descend(problem, phi[None], 1e-14)[0]
    with np.errstate(over="ignore"):  # of a covariance that is not used
        return scipy.optimize.leastsq(
            problem.weighted_residuals,
            phi,
            Dfun=problem.weighted_jacobian,
            full_output=True,  # else it warns; what it calls success is judged by the gradient instead
            xtol=1e-15,
            ftol=1e-15,
            gtol=0.0,
            maxfev=400,
        )[0]


def scaled_gradient(problem: Problem, phi: Array) -> float:
    """Largest cosine between a column of the Jacobian and the pull of the residuals: 0 at an optimum."""
    r_n, columns = problem.residuals(phi), problem.weighted_jacobian(phi)
    pull = np.sqrt(problem.w_n) * problem.pull(r_n)
    # Below residuals of 1e-8 of the loss, what is left of the gradient is the rounding of the data.
    length = np.linalg.norm(columns, axis=0) * max(np.linalg.norm(pull), 1e-8 * np.sqrt(len(r_n)))
    return float(np.max(np.abs(columns.T @ pull) / np.maximum(length, 1e-30), initial=0.0))


def is_stationary(problem: Problem, phi: Array) -> bool:
    """Whether the gradient left is small, or no larger than the rounding of the objective hides.

    A residual is known to some eps, so 1/2 |r|^2 to eps |r|. A step that leaves a cosine c raises it by
    1/2 c^2 |r|^2: comparing objectives brings c down to sqrt(2 eps / |r|) and no further.
    """
    size = float(np.linalg.norm(problem.weighted_residuals(phi)))
    hidden = np.sqrt(2 * _EVALUATED_TO / max(size, 2 * _EVALUATED_TO))
    return scaled_gradient(problem, phi) <= max(SMALL_GRADIENT, hidden)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # of starts that then are left out
def solve(problem: Problem, starts_SF: Array | None = None) -> Optimum:
    """Best optimum over the starts, by default spread from the best to the worst point of the start grid.

    Starts that are given lead to the optima that they belong to, without a detour over a wider Huber delta.
    """
    if starts_SF is not None:
        phi_SF, tried = _descend(problem, starts_SF, 1e-10), len(starts_SF)
    else:
        rough = problem.sample(_DESCENDED)
        candidates_GF = candidates(problem)
        count = 24 if problem.model.form.rugged else 4 if candidates_GF.shape[1] <= 3 else 8
        ranks = np.unique(np.linspace(0, len(candidates_GF) - 1, count).astype(int))
        with np.errstate(over="ignore", invalid="ignore"):  # of starts that then are left out
            starts_SF = _sound(rough, candidates_GF[ranks])
            tolerance = 1e-10 if rough is problem else _ROUGHLY
            phi_SF = _sound(rough, descend(rough, starts_SF, tolerance=tolerance))
        if problem.objective == "huber-log" and problem.model.form.rugged:
            phi_SF = np.concatenate([phi_SF, *_restarts_around_best(rough, phi_SF, tolerance)])
        tried = len(phi_SF)
        if rough is not problem:
            best = np.argsort(rough.total(rough.residuals(phi_SF)))[:_SHARPENED]
            phi_SF = _descend(problem, phi_SF[best], 1e-10)
    # Near enough to tell which starts agree; only the best goes on to the last digits.
    total_S = problem.total(problem.residuals(phi_SF))
    first, *others = np.argsort(total_S)
    phi, total_S[first] = _sharpest(problem, phi_SF[first], total_S[first])
    best = first
    for s in others[:_SHARPENED]:
        if _agreeing(problem, total_S) >= 2:
            break
        # A valley may be too long for the common descent, and still lead to the same place.
        end, total_S[s] = _sharpest(problem, phi_SF[s], total_S[s])
        if total_S[s] < total_S[best]:
            best, phi = s, end
    return Optimum(
        phi,
        float(total_S[best]),
        scaled_gradient(problem, phi),
        is_stationary(problem, phi),
        tried,
        _agreeing(problem, total_S),
    )


def _sound(problem: Problem, phi_SF: Array) -> Array:
    """The ends of descents at which the law has finite slopes. Raises Refusal where none has."""
    sound_S = _has_slopes(problem, phi_SF)
    if not sound_S.any():
        raise Refusal(
            "the law exceeds every number wherever a start leads",
            mend="hold parameters (--fixed) at values that runs can have, or leave them free",
        )
    return phi_SF[sound_S]


def _has_slopes(problem: Problem, phi_SF: Array) -> NDArray[np.bool_]:
    return np.all(np.isfinite(problem.jacobian(phi_SF)), axis=(1, 2))


def _restarts_around_best(problem: Problem, phi_SF: Array, tolerance: float) -> list[Array]:
    """Where descents end that begin around the best optimum, as far off as noise may move it.

    At a delta far below the noise the sum is full of local optima, and the way there over wider deltas leads
    all starts into the same one. A round that finds a deeper one is followed by another around it.
    """
    rng = np.random.default_rng(0)
    out: list[Array] = []
    totals = problem.total(problem.residuals(phi_SF))
    best, least = phi_SF[np.nanargmin(totals)], float(np.nanmin(totals))
    for _ in range(_ROUNDS):
        r_n = problem.residuals(best)
        _, sizes, vt = np.linalg.svd(problem.weighted_jacobian(best), full_matrices=False)
        noise = np.sqrt(float(np.average(r_n**2, weights=problem.w_n)))
        reach_F = np.minimum(noise / np.maximum(sizes, 1e-300), 1.0)
        around_SF = best + (rng.standard_normal((_AROUND, len(best))) * reach_F) @ vt
        ends_SF = _descend(problem, around_SF, tolerance)
        out.append(ends_SF[_has_slopes(problem, ends_SF)])
        if not len(out[-1]):
            break
        totals = problem.total(problem.residuals(out[-1]))
        if not np.nanmin(totals) < least * (1 - max(tolerance, 1e-6)):
            break
        best, least = out[-1][np.nanargmin(totals)], float(np.nanmin(totals))
    return out


def _sharpest(problem: Problem, phi: Array, total: float) -> tuple[Array, float]:
    """``sharpen``, unless that made it worse."""
    end = sharpen(problem, phi)
    reached = float(problem.total(problem.residuals(end)))
    return (end, reached) if reached <= total else (phi, float(total))


def _agreeing(problem: Problem, total_S: Array) -> int:
    least = np.nanmin(total_S)
    return int(np.sum(total_S <= least + 1e-6 * least + 1e-24 * len(problem.y_n)))


def least_total(problem: Problem, bound: float = np.inf) -> float:
    """The objective of a simpler law, from the best point of its start grid alone, or some value above
    ``bound`` if it lies there."""
    phi_1F, rough = candidates(problem)[:1], problem.sample(_DESCENDED)
    if phi_1F.shape[1] and rough is problem:
        phi_1F = descend(problem, phi_1F, bound=bound)
    elif phi_1F.shape[1]:
        phi_1F = _descend(problem, descend(rough, phi_1F, tolerance=_ROUGHLY), 1e-10, bound)
    return float(problem.total(problem.residuals(phi_1F))[0])


def candidates(problem: Problem) -> Array:
    """The start grid on the model's free coordinates, best first."""
    problem = problem.sample(_RANKED)
    model, y_n = problem.model, problem.y_n
    # A weight of 1 / y^2 makes the squares of the start grid behave like squares of logarithms.
    weights = problem.w_n if problem.objective == "squared" else problem.w_n / y_n**2
    phi_GF = model.form.start(model.z_In, y_n, weights)[:, model.free]
    phi_GF = phi_GF[np.all(np.isfinite(phi_GF), axis=1)]
    total_G = problem.total(problem.residuals(phi_GF))
    return phi_GF[np.argsort(np.where(np.isfinite(total_G), total_G, np.inf), kind="stable")]
