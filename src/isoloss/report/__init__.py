"""Records and laws to one self-contained page."""

from isoloss.report.findings import Finding, findings
from isoloss.report.page import ReportResult, write

__all__ = ["Finding", "ReportResult", "findings", "write"]
