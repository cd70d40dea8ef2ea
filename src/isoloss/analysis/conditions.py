"""How a study's runs were trained, said beside the figures it touches, and which of them are left out."""

from collections.abc import Sequence

from isoloss import text
from isoloss.analysis.by_params import NEAR
from isoloss.records import Record, StudyData


def condition(study: StudyData) -> str:
    """What a reader must know before any finding: how many models, how large, and how long they trained."""
    used = [record for record in study.records if record.status == "finished"]
    if not used:
        return "No run has finished."
    sizes = [record.counts.params for record in used]
    longest = max(used, key=lambda record: record.tokens)
    updates = longest.tokens // (longest.settings["batch_size"] * longest.settings["context"])
    models = f"{text.plural(len(used), 'model')} of {text.counts(min(sizes), max(sizes))} parameters"
    return f"{models}, trained for at most {text.count(longest.tokens)} tokens ({updates:,} updates)."


def basis(study: StudyData) -> str:
    """Runs, scale, machines and days: where these numbers come from."""
    records = [record for record in study.records if record.status == "finished"]
    machines = sorted({record.environment.device_name for record in records})
    days = sorted({event.time[:10] for record in records for event in record.events})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"n = {len(records)} runs of {study.plan['study']}, scale {study.plan['scale']}, "
        f"{', '.join(machines)}, {when}"
    )


def left_out(study: StudyData) -> list[str]:
    """Every run that diverged, and why: they enter no figure, law or finding."""
    gone = [record for record in study.records if record.status == "diverged"]
    return [f"{record.label}, seed {record.seed}: {record.reason}." for record in gone]


def conditions(study: StudyData, families: Sequence[str]) -> tuple[str, ...]:
    """Caveats of the finished runs of these families: their precision, learning rates given by hand."""
    records = [r for r in study.records if r.status == "finished" and r.family in families]
    return tuple(precision_words(records) + rate_words(study, records)) if records else ()


def repeat_words(study: StudyData) -> list[str]:
    """A caveat where runs were trained for more tokens than the text has."""
    repeated = [record for record in study.records if record.status == "finished" and record.data.epochs > 1]
    if not repeated:
        return []
    data = max((record.data for record in repeated), key=lambda data: data.epochs)
    runs = text.plural(len(repeated), "run")
    return [
        f"The text has {text.count(data.train_tokens)} training tokens: {runs} read it more than once, at "
        f"most {data.epochs:.2g} times."
    ]


def precision_words(records: Sequence[Record]) -> list[str]:
    kinds: dict[str, dict[str, None]] = {}
    for record in records:
        kinds.setdefault(record.environment.dtype, {})[record.label] = None
    rest = max(kinds, key=lambda kind: len(kinds[kind]))
    others = [f"{text.listed(list(labels))} in {kind}" for kind, labels in kinds.items() if kind != rest]
    sentences = [f"All runs here were trained in {rest}."]
    if others:
        sentences = [f"Precision differs, and losses may with it: {text.listed(others)}, the rest in {rest}."]
    compiled = {record.environment.compiled for record in records}
    if compiled == {False, True}:
        labels = dict.fromkeys(f"{r.label} (seed {r.seed})" for r in records if r.environment.compiled)
        sentences.append(f"Compiled, so rounded otherwise: {text.listed(list(labels))}.")
    return sentences


def rate_words(study: StudyData, records: Sequence[Record]) -> list[str]:
    """Whose one rate the study file gives, and whose size lies beyond those that the recipe's sweep tried."""
    given = {
        (models["family"], models["learning_rates"][0])
        for models in study.plan["spec"].get("models", [])
        if len(models.get("learning_rates") or []) == 1
    }
    by_hand = [record for record in records if (record.family, record.learning_rate) in given]
    sentences = (
        [f"The learning rate of {whose(by_hand, records)} was given by hand, not swept."] if by_hand else []
    )
    swept = study.plan.get("swept", {})
    beyond = [
        record
        for record in records
        if (record.family, record.learning_rate) not in given and record.family in swept
        if not swept[record.family][0] / NEAR <= record.counts.params <= swept[record.family][1] * NEAR
    ]
    if beyond:
        tried = dict.fromkeys(text.counts(*swept[record.family]) for record in beyond)
        sentences.append(
            f"The learning rate of {whose(beyond, records)} follows from the recipe's sweep of other sizes "
            f"(N = {text.listed(list(tried))})."
        )
    return sentences


def whose(some: Sequence[Record], records: Sequence[Record]) -> str:
    labels = list(dict.fromkeys(record.label for record in some))
    return "all runs here" if len(some) == len(records) else text.listed(labels)
