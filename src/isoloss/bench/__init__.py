"""How fast, measured here: each number beside a peer or a bound that the same call measured."""
