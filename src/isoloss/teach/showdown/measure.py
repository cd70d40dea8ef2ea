"""Two texts from one prompt, written live by the packaged pair, and what is known of their kind.

The pair writes what is shown; three small models of each family, of one more size and budget, are counted.

steps       what each text was about to say, token by token
texts       the two texts shown, as A and B
order       who is A and who is B: drawn from the operating system's randomness, last to be given out
samples     of every text of the small models: copied and distinct n-grams
novelty     their means, beside held-out text of people
real        of the pair's texts: share of words that the training books hold, beside held-out text of people
held_out    recorded losses of the small models
positions   the same by position in the context
rates       recorded losses at half and twice the learning rate, and at the recipe's, of seed 0
recorded    how the small models were trained
shown       how the pair was trained, with its losses and those at other rates
"""

import secrets
from collections.abc import Callable, Sequence
from importlib.resources.abc import Traversable
from math import sqrt

import numpy as np
from tokenizers import Tokenizer

from isoloss.distributions import t_quantile
from isoloss.stats import LEVEL, Interval, mean, pooled_noise, share, t_interval
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables
from isoloss.teach.showdown import checkpoints, copying
from isoloss.teach.showdown.checkpoints import FAMILIES, Card, Trained
from isoloss.teach.showdown.settings import EARLY, MODEL_SEEDS, ShowdownSettings
from isoloss.teach.showdown.writing import Writer, as_utf8, candidates, dice, prompt_ids

PEOPLE = "held-out text"
SHARES = ("copied_4", "copied_8", "distinct_1", "distinct_2")


def measure(settings: ShowdownSettings, report: Report) -> Tables:
    report(0.0, "checking and loading the models")
    small, shown = checkpoints.package_folder(), checkpoints.shown_folder()
    about, pair_about = checkpoints.card(small), checkpoints.card(shown)
    pair, tokenizer = writers_of(settings, pair_about, shown, 1), checkpoints.tokenizer(shown)
    order = random_order()
    tables = write(settings, tokenizer, pair, order, report)
    report(0.7, "letting the small models write")
    writers, small_tokenizer = writers_of(settings, about, small, MODEL_SEEDS), checkpoints.tokenizer(small)
    for step in range(settings.tokens):
        write_token(settings, writers, step)
    report(0.9, "reading the training text")
    copying.training_words()
    report(0.95, "comparing with the training text")
    samples = counts(small_tokenizer, writers)
    return {
        **tables,
        "real": real_words(tokenizer, pair),
        "order": [{"label": label, "family": name} for label, name in order.items()],
        "samples": [{"side": name, **row} for name, rows in samples.items() for row in rows],
        "novelty": novelty(samples),
        "held_out": held_out(about),
        "positions": positions(about),
        "rates": rates(about),
        "recorded": [recipe_row(about)],
        "shown": shown_rows(pair_about),
    }


def writers_of(
    settings: ShowdownSettings, about: Card, folder: Traversable, members: int
) -> dict[str, Writer]:
    prompt = prompt_ids(checkpoints.tokenizer(folder), settings.prompt)
    return {
        name: Writer(
            checkpoints.cohort(about, name, range(members), folder),
            prompt,
            members=members,
            samples=settings.samples,
            context=about.context,
        )
        for name in FAMILIES
    }


def random_order(below: Callable[[int], int] = secrets.randbelow) -> dict[str, str]:
    """Who is A and who is B: no seed tells."""
    first = below(2)
    return {"A": FAMILIES[first], "B": FAMILIES[1 - first]}


def write(
    settings: ShowdownSettings,
    tokenizer: Tokenizer,
    writers: dict[str, Writer],
    order: dict[str, str],
    report: Report,
) -> Tables:
    """Both sides in turn, a token each, with the same dice; reports name A and B only."""
    steps: list[Row] = []
    texts: list[Row] = []
    for step in range(settings.tokens):
        latest: list[Row] = []
        texts = []
        chance_KBV = write_token(settings, writers, step)
        for label, name in order.items():
            written = writers[name].ids_of(0, 0)
            pieces = candidates(tokenizer, chance_KBV[name][0, 0], written[-1])
            latest += [{"label": label, "step": step + 1, **row} for row in pieces]
            text = tokenizer.decode(written)
            texts.append({"label": label, "prompt": as_utf8(settings.prompt), "text": text})
        steps += latest
        done, text = (step + 1) / settings.tokens, f"token {step + 1} of {settings.tokens}"
        report(0.05 + 0.6 * done, text, {"steps": latest, "texts": texts})
    return {"steps": steps, "texts": texts}


def write_token(settings: ShowdownSettings, writers: dict[str, Writer], step: int) -> dict[str, np.ndarray]:
    """A token of every text by every side, with the same dice; the chances p_KBV that each drew from."""
    how = {"temperature": settings.temperature, "top_k": settings.top_k}
    K, B, _ = next(iter(writers.values())).ids_KBT.shape
    dice_KB = dice(settings.seed, K, B, settings.tokens)[..., step]
    return {name: writer.write(dice_KB, **how) for name, writer in writers.items()}


def real_words(tokenizer: Tokenizer, writers: dict[str, Writer]) -> list[Row]:
    """Share of a text's words that the training books hold: mean over texts by side, with its interval."""
    words = {name: written_words(tokenizer, writer) for name, writer in writers.items()}
    words[PEOPLE] = passages_like(words)
    known = set(copying.training_words())
    rows: list[Row] = []
    for side, texts in words.items():
        held = [sum(word in known for word in text) / len(text) for text in texts if text]
        if len(held) > 1:
            rows.append({"side": side, "words": sum(map(len, texts)), **over_texts(held, True)})
    return rows


def passages_like(words: dict[str, list[copying.Words]]) -> list[copying.Words]:
    """As many passages of held-out text as a side wrote, as long as a middling text."""
    lengths = [len(text) for texts in words.values() for text in texts]
    return copying.held_out_passages(len(lengths) // len(words), max(1, int(np.median(lengths))))


def counts(tokenizer: Tokenizer, writers: dict[str, Writer]) -> dict[str, list[Row]]:
    """A row a text of each side, and of as many passages of held-out text, as long as a middling text."""
    words = {name: written_words(tokenizer, writer) for name, writer in writers.items()}
    words[PEOPLE] = passages_like(words)
    every = [text for texts in words.values() for text in texts]
    overlaps = iter(copying.overlaps(every, copying.training_words()))
    return {
        side: [{"sample": number, **counts_of(text, next(overlaps))} for number, text in enumerate(texts)]
        for side, texts in words.items()
    }


def counts_of(text: copying.Words, overlap: copying.Overlap) -> Row:
    """None where the text is too short to have such an n-gram."""
    return {
        "words": overlap.words,
        "copied_4": overlap.share(4),
        "copied_8": overlap.share(8),
        "longest": overlap.longest,
        "distinct_1": copying.distinct(text, 1),
        "distinct_2": copying.distinct(text, 2),
    }


def written_words(tokenizer: Tokenizer, writer: Writer) -> list[copying.Words]:
    """Of every text of every member, the members in turn, without what may be torn at its ends."""
    K, B, _ = writer.ids_KBT.shape
    texts = tokenizer.decode_batch([writer.ids_of(k, b) for k in range(K) for b in range(B)])
    return [copying.words_of(text, whole=True) for text in texts]


def novelty(samples: dict[str, list[Row]]) -> list[Row]:
    """Mean over texts with its interval, by side and measure; no row where fewer than two texts have one."""
    rows: list[Row] = []
    for side, texts in samples.items():
        for measure in (*SHARES, "longest"):
            values = [float(text[measure]) for text in texts if text[measure] is not None]
            if len(values) > 1:
                rows.append({"side": side, "measure": measure, **over_texts(values, measure in SHARES)})
    return rows


def over_texts(values: Sequence[float], are_shares: bool) -> Row:
    """Mean with a t interval; of shares it lies inside 0 to 1.

    Texts that all have 0, or all 1, have no spread, yet are not certain: a text's share is above 0 only if
    the text is one of those that have any, so Wilson's bound for none of n texts holds for the mean as well.
    """
    if are_shares and set(values) in ({0.0}, {1.0}):
        return share(sum(values), len(values)).row()
    noise, n, middle = pooled_noise([values]), len(values), sum(values) / len(values)
    reach = t_quantile(LEVEL, noise.df) * noise.sd / sqrt(n)
    interval = Interval(middle, middle - reach, middle + reach, n, noise.df)
    return (interval.within(0.0, 1.0) if are_shares else interval).row()


def held_out(about: Card) -> list[Row]:
    """Recorded loss of each run, with a 95 % t interval over its ``n`` held-out windows.

    ``early`` and ``late``: its loss over the first positions of a window, and over the second half.
    """
    early, late = (1, EARLY), (about.context // 2 + 1, about.context)
    return [
        {
            "family": run.family,
            "seed": run.seed,
            "params_total": run.params_total,
            "learning_rate": run.learning_rate,
            **loss_row(run.loss, run.loss_se, run.windows),
            "early": span(run, *early),
            "late": span(run, *late),
        }
        for run in about.runs
    ]


def loss_row(loss: float, se: float, windows: int) -> Row:
    interval = t_interval(loss, se, windows, windows - 1)
    return {"loss": loss, "low": interval.low, "high": interval.high, "n": windows}


def positions(about: Card) -> list[Row]:
    """Recorded loss in bins of position (1-based): mean over the ``n`` seeds of a family, with a t interval.

    Its noise is pooled over both families, bin by bin.
    """
    rows: list[Row] = []
    for first, last in octaves(about.context):
        groups = {
            name: [span(run, first, last) for run in about.runs if run.family == name] for name in FAMILIES
        }
        noise, center = pooled_noise(groups.values()), sqrt(first * last)
        for name, losses in groups.items():
            row = mean(losses, noise=noise).row()
            rows.append({"family": name, "first": first, "last": last, "position": center, **row})
    return rows


def octaves(context: int) -> list[tuple[int, int]]:
    """(first, last) of each bin, 1-based: 1, 2, 3-4, 5-8, 9-16, ..., up to ``context``."""
    bins = [(1, 1)]
    while bins[-1][1] < context:
        last = bins[-1][1]
        bins.append((last + 1, min(2 * last, context)))
    return bins


def span(run: Trained, first: int, last: int) -> float:
    """Mean held-out loss of a run over positions first .. last."""
    return sum(run.sum_T[first - 1 : last]) / (run.windows * (last - first + 1))


def recipe_row(about: Card) -> Row:
    cpu = sum(run.cpu_seconds for run in about.runs)
    return {**about.model_dump(exclude={"runs", "other_rates"}), "cpu_seconds": round(cpu, 1)}


def shown_rows(about: Card) -> list[Row]:
    """The pair, a row a family, then what it gave at other rates and fewer tokens."""
    rows: list[Row] = [
        {
            "family": run.family,
            "params_total": run.params_total,
            "tokens": about.tokens,
            "learning_rate": run.learning_rate,
            "loss": run.loss,
        }
        for run in about.runs
    ]
    tried: list[Row] = [
        {
            "family": other.family,
            "params_total": None,
            "tokens": other.tokens,
            "learning_rate": other.learning_rate,
            "loss": other.loss,
        }
        for other in about.other_rates
    ]
    return rows + tried


def rates(about: Card) -> list[Row]:
    """Recorded loss of seed 0 by learning rate: the recipe's, half of it and twice it."""
    rows: list[Row] = [
        {
            "family": run.family,
            "learning_rate": run.learning_rate,
            "recipe": run in about.runs,
            **loss_row(run.loss, run.loss_se, about.runs[0].windows),
        }
        for run in (*about.runs, *about.other_rates)
        if run.seed == 0
    ]
    return sorted(rows, key=lambda row: (row["family"], row["learning_rate"]))
