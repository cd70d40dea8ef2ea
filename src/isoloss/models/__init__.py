"""Model families: each file reads like its paper."""

from isoloss.models.cohort import build_cohort, count
from isoloss.models.output import Output
from isoloss.models.registry import Family, families, family, load_file, register, shape_of
from isoloss.models.shape import Shape

__all__ = [
    "Family",
    "Output",
    "Shape",
    "build_cohort",
    "count",
    "families",
    "family",
    "load_file",
    "register",
    "shape_of",
]
