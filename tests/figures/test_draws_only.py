"""Figures draw: what they show is measured below them."""

import ast
from pathlib import Path

import pytest

from isoloss import figures

STATISTICS = {
    "polyfit", "median", "nanmedian", "mean", "nanmean", "average", "std", "nanstd", "var", "quantile",
    "nanquantile", "percentile", "corrcoef", "cov", "lstsq",
}  # fmt: skip
DECIDED = {"allocation_exponent", "design", "optima", "plan"}
"""Of ``isoloss.plans``: what plans, or searches for optima."""
MODULES = sorted(path for path in Path(figures.__file__).parent.glob("*.py"))


def measured(source: str) -> list[str]:
    """Where a module imports what measures, fits a law or plans, or takes a statistic by NumPy."""
    seen = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            names += [f"isoloss.{a.name}" for a in node.names if names == ["isoloss"]]
            names += [f"isoloss.laws.{a.name}" for a in node.names if names == ["isoloss.laws"]]
            seen += [name for name in names if name in ("isoloss.stats", "isoloss.laws.fit")]
            if names[0].split(".")[:2] == ["isoloss", "plans"]:
                seen += [f"{names[0]}.{a.name}" for a in node.names if a.name in DECIDED]
            seen += [name for name in names if name.split(".")[0] in ("scipy", "statistics")]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("np", "numpy") and node.attr in STATISTICS:
                seen.append(f"np.{node.attr}")
            if (node.value.id, node.attr) == ("laws", "fit"):
                seen.append("isoloss.laws.fit")
    return seen


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_figure_measures_nothing(path):
    assert measured(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "from isoloss.stats import LEVEL", "from isoloss import stats", "import isoloss.stats",
        "from isoloss.laws import Fit, fit", "from isoloss import laws; laws.fit('power', x, y)",
        "import numpy as np; np.polyfit(x, y, 1)", "import numpy as np; np.median(x)",
        "from scipy.stats import t", "from isoloss.plans import Plan, plan",
        "from isoloss.plans.curve import optima", "from isoloss.plans.design import Design, design",
        "from isoloss.plans.curve import allocation_exponent",
    ],
)  # fmt: skip
def test_control_measuring_is_seen(line):
    assert measured(line)
