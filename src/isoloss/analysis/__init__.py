"""What measures and judges a study: numbers and verdicts for figures to draw, reports to write. No torch."""
