"""Analysis: measures and judges a study."""
