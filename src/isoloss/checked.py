"""What the checks of a family say to people: a study keeps their short names."""

from collections.abc import Mapping

PASSED = {
    "output": "logits are finite and of the right shape",
    "causal": "later tokens do not leak",
    "members": "seeds fix the weights and members do not mix",
    "gradients": "gradients reach every parameter",
}


def words(facts: Mapping[str, str]) -> str:
    """'file: glr.py; later tokens do not leak: passed; ...' of what checking a family has found, by name."""
    return "; ".join(
        f"{PASSED[what]}: passed" if what in PASSED and outcome == "checked" else f"{what}: {outcome}"
        for what, outcome in facts.items()
    )
