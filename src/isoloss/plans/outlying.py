"""When a run is an outlier, of a law as of a forecast."""

OFF = 8.0
"""Standard deviations, by medians, beyond which a run is an outlier: tails of real runs stay in."""
MOST_OFF = 0.1
"""A larger part of the runs is no group of outliers."""
FEWEST = 12
"""Runs, of which one may be told from the rest."""
