"""Sources: other people's runs, read and checked."""

from isoloss.sources.checks import accept, usable
from isoloss.sources.columns import runs
from isoloss.sources.fitting import columns_for, fit_table
from isoloss.sources.published import published
from isoloss.sources.read import read
from isoloss.sources.table import Excluded, Runs, TableIssue

__all__ = [
    "Excluded",
    "Runs",
    "TableIssue",
    "accept",
    "columns_for",
    "fit_table",
    "published",
    "read",
    "runs",
    "usable",
]
