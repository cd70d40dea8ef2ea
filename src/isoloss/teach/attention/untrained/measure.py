"""The same sentence through several random networks: what attention maps look like when they mean nothing."""

from isoloss.teach.attention.head import double, head_of
from isoloss.teach.attention.settings import UntrainedSettings
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables


def measure(settings: UntrainedSettings, report: Report) -> Tables:
    """Tables ``words`` and ``map``: the weight of each word on each, a map a seed."""
    words = settings.sentence.split()
    tables: Tables = {
        "words": [{"place": place, "word": word} for place, word in enumerate(words, 1)],
        "map": [],
    }
    for done, seed in enumerate(settings.seed_numbers, 1):
        tables["map"] += map_rows(words, settings.d_model, seed)
        report(done / settings.seeds, f"random network {done} of {settings.seeds}", tables)
    return tables


def map_rows(words: list[str], d_model: int, seed: int) -> list[Row]:
    weights_TS = double(head_of(words, d_model, seed).weights_TS)
    return [
        {"seed": seed, "place": t + 1, "looks_at": s + 1, "value": float(weights_TS[t, s])}
        for t in range(len(words))
        for s in range(t + 1)
    ]
