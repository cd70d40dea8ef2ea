"""Studies: what to train, written in TOML; planned, run on an engine, resumed by running again."""
