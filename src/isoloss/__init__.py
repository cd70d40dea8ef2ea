"""isoloss: a laboratory for neural scaling laws."""

__version__ = "0.1.0"
