"""Sources: other people's tables of runs, read, checked and fetched. No torch."""
