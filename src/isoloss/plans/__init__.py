"""Plans: what a law says to do. No torch."""
