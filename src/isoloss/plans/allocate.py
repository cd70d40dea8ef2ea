"""The best split of compute between parameters and tokens, for a law and all its draws at once.

For L = E + (A/N^alpha + B/D^beta)^g and C = k N D (Hoffmann et al. 2022, arXiv 2203.15556, eq. 4):

    N = G (C/k)^a,  D = (C/k)^b / G,  G = (alpha A / (beta B))^(1/(alpha+beta)),
    a = beta/(alpha+beta),  b = alpha/(alpha+beta),

where alpha A N^-alpha = beta B D^-beta. Every other law, and every plan that also pays for serving or repeats
data, is minimised over log N: on a grid, then by Chandrupatla's method inside the best bracket.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isoloss.laws import Array
from isoloss.plans.cost import Rates
from isoloss.plans.fixed_inputs import Values
from isoloss.plans.loss_surface import LARGEST_LOG, LossSurface, PowerTerms, Rows

LogSizes = tuple[Array, Array]

GRID, ZOOMS = 65, 4


@dataclass(frozen=True)
class AllocationQuestion:
    """A budget of FLOPs or a target loss; N or D fixed, or neither.

    ``serve_tokens`` are processed by the finished model and paid for too; ``most_tokens`` bounds D.
    """

    rates: Rates
    flops: float | None = None
    loss: float | None = None
    params: float | None = None
    tokens: float | None = None
    serve_tokens: float = 0.0
    most_tokens: float | None = None

    @property
    def most(self) -> float:
        return LARGEST_LOG if self.most_tokens is None else float(np.log(self.most_tokens))

    @property
    def target(self) -> float:
        """The target loss; NaN for a budget."""
        return np.nan if self.loss is None else self.loss

    @property
    def plain(self) -> bool:
        return self.serve_tokens == 0 and self.most_tokens is None

    def log_cost(self, log_n: Values, log_d: Values) -> Array:
        """Training and serving together, log FLOPs."""
        per_param = self.rates.train * np.exp(log_d) + self.rates.serve * self.serve_tokens
        return log_n + np.log(per_param)

    def log_tokens_within(self, log_flops: Values, log_n: Values) -> Array:
        """Log tokens that a budget leaves for N parameters once serving is paid; NaN where less than one."""
        left = np.exp(log_flops - log_n) - self.rates.serve * self.serve_tokens
        with np.errstate(invalid="ignore", divide="ignore"):
            log_d = np.log(left / self.rates.train)
        return np.where(log_d >= 0, log_d, np.nan)


def answer(surface: LossSurface, question: AllocationQuestion) -> LogSizes:
    """log N and log D for each row: infinite where the target is out of reach, NaN without an optimum."""
    rows, ones = surface.rows, np.ones(surface.rows.shape)
    log_flops = None if question.flops is None else np.log(question.flops) * ones
    if question.params is not None:
        log_n = np.log(question.params) * ones
        if log_flops is None:
            log_d = _or_infinite(surface.log_tokens(rows, log_n, question.target, question.most))
        else:
            log_d = question.log_tokens_within(log_flops, log_n)
    elif question.tokens is not None:
        log_d = np.log(question.tokens) * ones
        if log_flops is None:
            log_n = _or_infinite(surface.log_params(rows, log_d, question.target))
        else:
            log_n = log_flops - question.log_cost(0 * ones, log_d)
    elif log_flops is None:
        log_n, log_d = at_loss(surface, question, question.target * ones)
    else:
        log_n, log_d = at_budget(surface, question, log_flops)
    hole = surface.broken_S | np.isnan(log_n) | np.isnan(log_d)
    return np.where(hole, np.nan, log_n), np.where(hole, np.nan, log_d)


def at_budget(surface: LossSurface, question: AllocationQuestion, log_flops: Array) -> LogSizes:
    """log N and log D of the least loss for ``log_flops``, row by row."""
    terms = surface.terms
    if terms is not None and question.plain:
        return _inside(*closed_form(terms, log_flops - np.log(question.rates.train)))
    return minimise_budget(surface, question, log_flops)


def at_loss(surface: LossSurface, question: AllocationQuestion, loss: Array) -> LogSizes:
    """log N and log D of the least cost that reaches ``loss``, row by row; infinite where none does."""
    terms = surface.terms
    if terms is not None and question.plain:
        log_n, log_d = _inside(*closed_form_at_loss(terms, loss))
        return np.where(loss > terms.E, log_n, np.inf), np.where(loss > terms.E, log_d, np.inf)
    return minimise_cost(surface, question, loss)


def closed_form(terms: PowerTerms, log_product: Array) -> LogSizes:
    """The optimum at N D = exp(log_product)."""
    both = terms.alpha + terms.beta
    log_g = np.log(terms.alpha * terms.A / (terms.beta * terms.B)) / both
    log_n = log_g + terms.beta / both * log_product
    return log_n, log_product - log_n


def closed_form_at_loss(terms: PowerTerms, loss: Array) -> LogSizes:
    """The least N D that reaches ``loss``.

    At the optimum alpha A N^-alpha = beta B D^-beta = m, so (loss - E)^(1/g) = m (1/alpha + 1/beta).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        log_m = np.log(loss - terms.E) / terms.g - np.log(1 / terms.alpha + 1 / terms.beta)
        log_n = (np.log(terms.alpha * terms.A) - log_m) / terms.alpha
        log_d = (np.log(terms.beta * terms.B) - log_m) / terms.beta
    return log_n, log_d


def minimise_budget(surface: LossSurface, question: AllocationQuestion, log_flops: Array) -> LogSizes:
    """``at_budget`` without a closed form."""
    most = np.full(log_flops.shape, question.most)
    low = np.maximum(log_flops - question.log_cost(np.zeros_like(most), most), 0.0)
    high = log_flops - question.log_cost(np.zeros_like(most), np.zeros_like(most))

    def tokens_at(log_n: Array, rows: Rows) -> Array:
        # Rounding at the ends must not turn the last token into none.
        return np.nan_to_num(question.log_tokens_within(log_flops[rows], log_n), nan=0.0)

    log_n = _minimise(lambda n, rows: surface.loss(rows, n, tokens_at(n, rows)), low, high, question)
    return log_n, tokens_at(log_n, surface.rows)


def minimise_cost(surface: LossSurface, question: AllocationQuestion, loss: Array) -> LogSizes:
    """``at_loss`` without a closed form."""
    # Fewer parameters than this do not reach the loss with any number of tokens; a hair more keeps D finite.
    low = surface.log_params(surface.rows, np.full(loss.shape, question.most), loss)
    reachable = np.isfinite(low)
    low = np.where(reachable, low, 0.0)

    def tokens_at(log_n: Array, rows: Rows) -> Array:
        log_d = surface.log_tokens(rows, log_n, loss[rows], question.most)
        return np.where(np.isnan(log_d), question.most, log_d)

    high = np.full(loss.shape, LARGEST_LOG)
    log_n = _minimise(lambda n, rows: question.log_cost(n, tokens_at(n, rows)), low, high, question)
    log_d_S = tokens_at(log_n, surface.rows)
    return np.where(reachable, log_n, np.inf), np.where(reachable, log_d_S, np.inf)


def _minimise(
    value: Callable[[Array, Rows], Array], low: Array, high: Array, question: AllocationQuestion
) -> Array:
    """argmin over [low, high], row by row; NaN where it lies at an end that the question does not set."""
    low, high, rows = low.copy(), high.copy(), np.arange(len(low))
    bracket_3S, ended_S = np.empty((3, len(low))), np.zeros(len(low), dtype=int)
    for _ in range(ZOOMS):
        grid_GR = np.linspace(low[rows], high[rows], GRID)
        value_GR = value(grid_GR, np.broadcast_to(rows, grid_GR.shape))
        best_R, each = np.argmin(np.where(np.isnan(value_GR), np.inf, value_GR), axis=0), np.arange(len(rows))
        ended_S[rows] = (best_R == GRID - 1).astype(int) - (best_R == 0)
        middle_R = np.clip(best_R, 1, GRID - 2)
        bracket_3S[:, rows] = [grid_GR[middle_R + step, each] for step in (-1, 0, 1)]
        # The optimum may hide between an end and its neighbour: look there again.
        low[rows], high[rows] = bracket_3S[0, rows], bracket_3S[2, rows]
        low[ended_S > 0], high[ended_S < 0] = bracket_3S[1, ended_S > 0], bracket_3S[1, ended_S < 0]
        rows = rows[ended_S[rows] != 0]
        if not len(rows):
            break
    # At a low end above one parameter D is as large as it may be: an answer if the question bounds D.
    out = np.where((ended_S < 0) & (low > 0) & (question.most_tokens is not None), low, np.nan)
    inner = np.flatnonzero(ended_S == 0)
    if len(inner):
        from scipy.optimize import elementwise  # slow to import, and a closed form needs none

        out[inner] = elementwise.find_minimum(value, tuple(bracket_3S[:, inner]), args=(inner,)).x
    return out


def _inside(log_n: Array, log_d: Array) -> LogSizes:
    """NaN where the optimum has less than one parameter or token."""
    outside = (log_n < 0) | (log_d < 0)
    return np.where(outside, np.nan, log_n), np.where(outside, np.nan, log_d)


def _or_infinite(log_x: Array) -> Array:
    return np.where(np.isnan(log_x), np.inf, log_x)
