"""A problem at its optimum, and the fit that it makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from isoloss.errors import Refusal
from isoloss.laws._result import Fit, FitData, FitStatus, Objective, Starts
from isoloss.laws._rows import Points
from isoloss.laws._scaled import ScaledForm
from isoloss.laws._solve import Optimum, Problem
from isoloss.laws._spread import FEW, covariance, jackknife, sigma
from isoloss.laws._support import Seeds
from isoloss.laws.forms import Array, Form, registered

STEEP = 1.0  # arXiv 2604.12946 prints 0.78, the largest of sources/published


@dataclass(frozen=True)
class Solved:
    """A problem at its optimum, and what was learned on the way.

    ``likelihood`` is the objective where that was not summed, ``seeds`` what runs of equal inputs show,
    ``notes`` what was done because of that, ``unsupported`` why the data leave the parameters open.
    """

    problem: Problem
    points: Points
    optimum: Optimum
    held: Mapping[str, float]
    tied: Sequence[Sequence[str]]
    likelihood: Objective | None
    seeds: Seeds | None = None
    notes: tuple[str, ...] = ()
    unsupported: str = ""

    @property
    def scaled(self) -> ScaledForm:
        return self.problem.model

    @property
    def form(self) -> Form:
        return self.problem.model.form

    @property
    def df(self) -> int:
        """Points minus free parameters."""
        return len(self.points.y_n) - len(self.optimum.phi)

    @cached_property
    def theta(self) -> Array:
        return self.scaled.theta(self.optimum.phi)

    @property
    def status(self) -> FitStatus:
        if self.unsupported:
            return FitStatus.CURVE_ONLY
        if not self.optimum.stationary:
            return FitStatus.GRADIENT_REMAINS
        return FitStatus.CONVERGED if self.optimum.agreeing >= 2 else FitStatus.STARTS_DISAGREE

    @property
    def unit(self) -> float:
        """Of a residual, in losses; 1 where residuals are of logs."""
        return float(np.exp(self.scaled.log_loss_scale)) if self.problem.objective == "squared" else 1.0

    def fit(self, level: float, data: FitData, source: dict[str, Any]) -> Fit:
        """With t intervals. Raises Refusal for a parameter that no float holds."""
        law, points, best = self.form, self.points, self.optimum
        columns = zip(law.inputs, points.x_In.tolist(), strict=True)
        params = self._params()
        df, condition, spread_pp, warnings = self._spread()
        errors, intervals = self.scaled.t_intervals(self.theta, spread_pp, max(df, 1), level)
        r_n = self.problem.residuals(best.phi)
        return Fit(
            law=law.name,
            status=self.status,
            reason=self.unsupported or self.status.value,
            params=params,
            standard_errors=errors,
            intervals=intervals,
            level=level,
            intervals_by="t",
            objective=self.likelihood or self._objective(),
            fixed={name: params[name] for name in self.scaled.held_names},
            tied=tuple(tuple(group) for group in self.tied),
            n=points.rows,
            clusters=points.groups if points.clustered or self.notes else None,
            df=df,
            starts=Starts(best.tried, best.agreeing),
            gradient=best.gradient,
            condition=min(condition, 1e300),
            warnings=(*self.notes, *self._doubts(), *_steep(law, params, self.held), *warnings),
            residuals=tuple((-self.unit * r_n).tolist()),
            sigma=self._sigma(r_n),
            seeds=self.seeds,
            theta=tuple(self.theta.tolist()),
            covariance=None if spread_pp is None else tuple(tuple(row) for row in spread_pp.tolist()),
            units=self.scaled.units,
            ranges={name: (min(x), max(x)) for name, x in columns},
            signed_floor=law.signed != registered(law.name).signed,
            data=data,
            source=source,
        )

    def _params(self) -> dict[str, float]:
        law, kappa = self.form, self.scaled.unscale(self.theta)
        most_p = np.where([name in law.signed for name in law.parameters], np.inf, 700.0)
        # A curve may do without a term: its coefficient is then 0.
        possible_p = np.where(kappa < 0, bool(self.unsupported) | (kappa > -most_p), kappa < most_p)
        possible_p[self.scaled.held_K] = True
        if not possible_p.all():
            name = law.parameters[int(np.argmin(possible_p))]
            raise Refusal(
                self.unsupported or f"{name} exceeds the range of floats",
                mend="give inputs in larger units, such as millions",
            )
        return law.plain(kappa) | {name: float(value) for name, value in self.held.items()}

    def _spread(self) -> tuple[int, float, Array | None, list[str]]:
        """Degrees of freedom, condition number, covariance of theta where it holds, and warnings."""
        points, phi, df = self.points, self.optimum.phi, self.df
        condition, spread_FF = covariance(self.problem, phi, df)
        warnings = []
        if points.dependent:
            df = max(points.groups - len(phi), 0)
            spread_FF = jackknife(self.problem, phi, points.group_n) if df >= 1 else None
            if spread_FF is None:
                warnings.append(f"{points.groups} runs carry {len(phi)} free parameters: no interval")
        if self.status is not FitStatus.CONVERGED or (self.form.correlated and not points.clustered):
            spread_FF = None
        if spread_FF is None:
            return df, condition, None, warnings
        chain = self.scaled.chain(self.theta)
        return df, condition, chain @ spread_FF @ chain.T, warnings

    def _objective(self) -> Objective:
        name, total = self.problem.objective, self.optimum.total
        if name == "huber-log":
            return Objective(name, self.problem.delta, total)
        return Objective(name, None, 2 * total * self.unit**2)

    def _sigma(self, r_n: Array) -> float:
        """Of one run: the law's own error included where seeds show one."""
        if self.seeds is not None and (self.points.clustered or self.notes):
            return float(np.hypot(self.seeds.sd, self.seeds.form_sd))
        return self.unit * sigma(self.problem, r_n, self.df)

    def _doubts(self) -> list[str]:
        doubts: list[str] = []
        df, correlated = self.df, self.form.correlated
        if df < 3:
            degrees = "1 degree" if df == 1 else f"{df} degrees"
            doubts.append(f"only {degrees} of freedom: intervals are wide and rest on normal noise")
        if self.problem.objective in ("huber-log", "huber-likelihood") and df < FEW:
            doubts.append(
                f"with {df} degrees of freedom Huber's intervals rest on normal noise; squared-log's are "
                "narrower"
            )
        if correlated and not self.points.clustered:
            doubts.append(
                f"rows along {correlated} of one run share their noise: intervals need several seeds, named "
                "by cluster"
            )
        return doubts


def _steep(law: Form, params: Mapping[str, float], held: Mapping[str, float]) -> list[str]:
    """Exponents of N and D that no published law has: a sign of too little range, however sure they look."""
    return [
        f"{name} is {params[name]:.3g}: published exponents of N and D lie below {STEEP:g}. A free fit runs "
        "off to larger ones where the runs do not determine it"
        for of in ("params", "tokens")
        for name in law.spans.get(of, ())
        if name not in held and name in law.limits and params[name] > STEEP
    ]
