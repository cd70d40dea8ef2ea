"""Train two-layer Transformers to bind keys to values; follow the weight on right slots; flatten a layer."""

import numpy as np

from isoloss.stats import mean
from isoloss.teach.amnesia.value_set import value_set_share
from isoloss.teach.attention.mixing import mixed_by, uniform
from isoloss.teach.attention.right_slot import slots
from isoloss.teach.attention.settings import RightSlotSettings
from isoloss.teach.learner import TEST_STREAM, Cohort, Replica, Side, example, params
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables
from isoloss.teach.shares import UNSEEN
from isoloss.teach.tasks import Binding

SHAPE = {"n_layer": 2, "n_head": 1, "d_model": 32, "positions": "rotary", "tied": False}
"""With a tied head the same networks take twice as many updates to find the circuit."""

GLANCE = 500
"""Unseen strings at each look on the way; before and after training it is UNSEEN."""

FORCED = {"none": (), "layer 1": (0,), "layer 2": (1,)}


def measure(settings: RightSlotSettings, report: Report) -> Tables:
    """Tables ``accuracy``, ``mass``, ``ablation``, ``baselines``, ``map``, ``string``, ``network``."""
    task = Binding(settings.pairs, settings.keys, settings.values)
    asked = Binding(settings.pairs, settings.keys, settings.values, one_query=True)
    members = [Replica(seed, settings.rate) for seed in settings.seed_numbers]
    cohort = Cohort(Side("transformer", "transformer", SHAPE), task, members, batch=settings.batch)
    shown_BT, _ = example(task)
    strings, _ = task.batch(np.random.default_rng([TEST_STREAM, GLANCE, 1]), GLANCE)
    tables: Tables = {
        "accuracy": [],
        "mass": [],
        "ablation": ablate(cohort, asked, "untrained"),
        "baselines": baselines(task),
        "map": map_rows(cohort, shown_BT[0], "untrained"),
        "string": string_rows(shown_BT[0], settings),
        "network": [{"params": params(cohort.model, len(members)), "task": repr(task)}],
    }
    look(cohort, asked, strings, tables)
    report(0.01, "before training", tables)
    while cohort.done < settings.updates:
        cohort.update()
        share = cohort.done / settings.updates
        if cohort.done % settings.every == 0 or cohort.done == settings.updates:
            look(cohort, asked, strings, tables)
            report(0.95 * share, f"update {cohort.done} of {settings.updates}", tables)
        elif cohort.done % 5 == 0:
            report(0.95 * share, f"update {cohort.done} of {settings.updates}")
    tables["map"] += map_rows(cohort, shown_BT[0], "trained")
    tables["ablation"] += ablate(cohort, asked, "trained")
    return tables


def look(cohort: Cohort, asked: Binding, strings: np.ndarray, tables: Tables) -> None:
    """Accuracy and the weight on the right slots now, a row a seed."""
    for member, accuracy in zip(cohort.members, cohort.shares(asked, strings=GLANCE), strict=True):
        tables["accuracy"].append({"seed": member.seed, "update": cohort.done, **accuracy.row()})
    maps = slots.attention_maps(cohort.model, strings, len(cohort.members))
    for layer, weights_KBTS in enumerate(maps):
        mass_KB = slots.right_mass(weights_KBTS, *slots.slots(layer, strings))
        for member, mass_B in zip(cohort.members, mass_KB, strict=True):
            where: Row = {"seed": member.seed, "layer": layer + 1, "update": cohort.done}
            tables["mass"].append(where | mean(mass_B).within(0.0, 1.0).row())


def ablate(cohort: Cohort, asked: Binding, state: str) -> list[Row]:
    """Accuracy of each seed as it is, and with one layer's attention forced uniform over the past."""
    rows: list[Row] = []
    for forced, layers in FORCED.items():
        with mixed_by(cohort.model, dict.fromkeys(layers, uniform)):
            shares = cohort.shares(asked)
        for member, accuracy in zip(cohort.members, shares, strict=True):
            rows.append({"state": state, "forced": forced, "seed": member.seed, **accuracy.row()})
    return rows


def baselines(task: Binding) -> list[Row]:
    """What can be had without attention to the right slot, exactly.

    ``uniform``: any value, 1 / values. ``value set``: the most frequent value of the string.
    """
    exact = {"uniform": 1 / task.values, "value set": value_set_share(task.pairs, task.values)}
    return [{"baseline": name, "value": p, "low": p, "high": p, "n": UNSEEN} for name, p in exact.items()]


def map_rows(cohort: Cohort, string_T: np.ndarray, state: str) -> list[Row]:
    """Both layers' maps of one unseen string: the first seed's weight, lowest and highest over seeds."""
    rows: list[Row] = []
    maps = slots.attention_maps(cohort.model, string_T[None], len(cohort.members))
    for layer, weights_KBTS in enumerate(maps):
        looks_BD, right_BD = slots.slots(layer, string_T[None])
        right = dict(zip(looks_BD[0].tolist(), right_BD[0].tolist(), strict=True))
        weights_KTS = weights_KBTS[:, 0]
        low_TS, high_TS, first_TS = weights_KTS.min(0), weights_KTS.max(0), weights_KTS[0]
        rows += [
            {
                "state": state,
                "layer": layer + 1,
                "seed": cohort.members[0].seed,
                "place": t,
                "looks_at": s,
                "right": right.get(t) == s,
                "value": float(first_TS[t, s]),
                "low": float(low_TS[t, s]),
                "high": float(high_TS[t, s]),
                "n": len(cohort.members),
            }
            for t in range(len(string_T))
            for s in range(t + 1)
        ]
    return rows


def string_rows(string_T: np.ndarray, settings: RightSlotSettings) -> list[Row]:
    """The tokens of the string shown: keys k0, k1 .., values v0, v1 .., queries k0?, k1? .."""
    D, rows = settings.pairs, list[Row]()
    for place, token in enumerate(string_T.tolist()):
        if place >= 2 * D:
            role, name = "query", f"k{token}?"
        else:
            role, name = ("value", f"v{token - settings.keys}") if place % 2 else ("key", f"k{token}")
        rows.append({"place": place, "token": name, "role": role})
    return rows
