"""Records and laws to one self-contained page."""

from isoloss.analysis.findings import Finding, findings
from isoloss.report.fit_page import FitReport
from isoloss.report.fit_page import write as write_fit
from isoloss.report.page import ReportResult, write

__all__ = ["Finding", "FitReport", "ReportResult", "findings", "write", "write_fit"]
