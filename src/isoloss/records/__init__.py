"""Run records, the store of a study on disk, and the loss table."""

from isoloss.records.schema import Record
from isoloss.records.store import StudyData, load

__all__ = ["Record", "StudyData", "load"]
