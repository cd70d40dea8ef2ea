"""Records and laws to one self-contained page."""

from typing import TYPE_CHECKING, Any

from isoloss.analysis.findings import Finding, findings
from isoloss.report.publish import ReportResult

if TYPE_CHECKING:
    from isoloss.report.fit_page import write as write_fit
    from isoloss.report.page import write

__all__ = ["Finding", "ReportResult", "findings", "write", "write_fit"]


def __getattr__(name: str) -> Any:
    """Both writers on demand: they import plans and forecasts, which a page of slides does without."""
    if name == "write":
        from isoloss.report.page import write as writer
    elif name == "write_fit":
        from isoloss.report.fit_page import write as writer
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return writer
