"""The comparison of families at every D that both reached."""

import polars as pl

from isoloss import text
from isoloss.analysis.by_params import ByParams, at_tokens
from isoloss.analysis.points import cooled_points, of_families, shared_tokens
from isoloss.records import StudyData

ByTokens = tuple[ByParams, ...]
"""One comparison for each D, ascending."""


def measure(study: StudyData) -> ByTokens:
    """Raises Refusal if a family is missing or no D is shared."""
    points = of_families(cooled_points(study.table()), "transformer", "lstm")
    shared_tokens(points)
    families = points.group_by("tokens").agg(pl.col("family").n_unique())
    shared = families.filter(pl.col("family") == 2)["tokens"].sort()
    return tuple(at_tokens(points, tokens) for tokens in shared)


def verdict(data: ByTokens) -> str:
    """In how many sizes the LSTM is ahead, D by D."""
    counted = [(each, ahead_of(each)) for each in data]
    kinds = {(each.rival, len(each.headline_gaps)) for each, _ in counted}
    counts = [ahead for _, ahead in counted if ahead is not None]
    if len(kinds) == 1 and len(counts) == len(counted):
        rival, size = kinds.pop()
        lstm, ours = (text.listed([str(ahead[i]) for ahead in counts]) for i in (0, 1))
        tokens = text.listed([text.count(each.tokens) for each, _ in counted])
        return (
            f"the {rival} is ahead at {lstm} and the Transformer at {ours} of {size} sizes, at D = {tokens}"
        )
    clauses: list[str] = []
    for each, ahead in counted:
        if ahead is None:
            clauses.append(f"no verdict at {text.count(each.tokens)}")
            continue
        clauses.append(
            f"the {each.rival} is ahead at {ahead[0]} and the Transformer at {ahead[1]} of "
            f"{len(each.headline_gaps)} sizes at D = {text.count(each.tokens)}"
        )
    return "; ".join(clauses)


def ahead_of(data: ByParams) -> tuple[int, int] | None:
    """At how many sizes the LSTM, the Transformer is ahead; None where seeds do not allow a verdict."""
    signs = [gap.difference.sign for gap in data.headline_gaps]
    return None if not signs or None in signs else (signs.count(1), signs.count(-1))
