"""Records and laws to one self-contained page."""

from isoloss.analysis.findings import Finding, findings
from isoloss.report.fit_page import write as write_fit
from isoloss.report.page import write
from isoloss.report.publish import ReportResult

FitReport = ReportResult
"""The former name of the result of a fit's report, kept for one version."""

__all__ = ["Finding", "FitReport", "ReportResult", "findings", "write", "write_fit"]
