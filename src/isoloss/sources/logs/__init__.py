"""Logs of trackers and trainers, and the loss table made of them: one module a tracker, both ways."""

from isoloss.sources.logs.export import export
from isoloss.sources.logs.loss_table import CONTRACT, LossTable, check_name, loss_table, write
from isoloss.sources.logs.readers import SOURCES

__all__ = ["CONTRACT", "SOURCES", "LossTable", "check_name", "export", "loss_table", "write"]
