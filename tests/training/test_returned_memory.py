"""Freed memory is returned between updates and evaluations, so that a peak is the larger of both."""

from itertools import pairwise

from isoloss.training import loop
from isoloss.training.loop import train


def test_it_is_returned_before_an_evaluation_between_its_parts_and_after(make_task, monkeypatch):
    done = []

    def noted(name):
        function = getattr(loop, name)

        def call(*arguments, **named):
            done.append(name)
            return function(*arguments, **named)

        monkeypatch.setattr(loop, name, call)

    for name in ("single_update", "evaluate", "evaluate_sliding", "return_freed"):
        noted(name)
    assert train(make_task("transformer"))
    assert {"single_update", "evaluate", "evaluate_sliding"} < set(done)
    kinds = [name for name in done if name != "return_freed"]
    between = pairwise(done)
    assert all("return_freed" in pair or pair == ("single_update", "single_update") for pair in between)
    assert done.count("return_freed") == 2 * kinds.count("evaluate") + kinds.count("evaluate_sliding")
