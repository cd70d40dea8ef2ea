"""Studies: what to train, in TOML; planned, run, resumed."""
