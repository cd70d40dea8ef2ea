"""Which column is which: well-known names, each exact, never a choice between two; units in headers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from isoloss.amounts import FLOPS_UNITS, MULTIPLES
from isoloss.files import shipped_toml

_NAMING = shipped_toml("isoloss.sources", "naming.toml")
SYNONYMS = {name: tuple(others) for name, others in _NAMING["synonyms"].items()}
LABELS = frozenset(_NAMING["labels"])
NUMBERS = frozenset([*SYNONYMS, *_NAMING["more_numbers"]]) - LABELS
PARAMETER_COUNTS = frozenset([*SYNONYMS["params"], *SYNONYMS["params_total"], *_NAMING["parameter_counts"]])
BATCHES = frozenset(_NAMING["batches"])
SETTINGS_BY_NAME = frozenset(_NAMING["settings"]) | BATCHES
_SHARES = frozenset(_NAMING["shares"])
_NO_SETTINGS = frozenset(_NAMING["no_settings"])
COUNTED = ("params", "params_total", "params_executed", "tokens", "unique_tokens", "flops")

_FOLDERS = re.compile(
    r"^(?:(?:config|cfg|summary|trainer|hparams|args|model|data|user_attrs|params)[./])+(?=.)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MULTIPLE = "|".join(map(re.escape, sorted(MULTIPLES, key=len, reverse=True)))
_AFTER = rf"(.+?)_(?:in_)?(?:x_?)?({_MULTIPLE})(?:_(?:of_)?(?:params|parameters|tokens))?"
_BEFORE = rf"({_MULTIPLE})_?(?:of_)?((?<=_).+|params|parameters|tokens)"
_FLOPS = re.compile(
    r"(?:(.*)_)?(giga|tera|peta|exa|zetta|[gtpez])_?(?:flops?|f(?=_?(?:s_?)?days?$))(?:_?(s_?)?(days?))?"
)
_DEVICE_TIME = re.compile(
    r"(^|_)(gpu|tpu|device|accelerator|[ahv]\d00|wall|core|node)_?(time|h|hrs?|hours?|days?|seconds?)$"
)
_LOSS_UNITS = (
    (r"bpb|bits?_(per_)?byte", "bits per byte"),
    (r"bpc|bits?_(per_)?char(acter)?", "bits per character"),
    (r"bits?", "bits per token"),
    (r"perplexity|ppl", "perplexity"),
    (r"normali[sz]ed|norm|unigram|excess|reducible", "normalised"),
    (r"nats?_(per_)?byte", "nats per byte"),
    (r"nats?_(per_)?char(acter)?", "nats per character"),
    (r"accuracy|acc|err|error|percent|pct", "a share"),
)  # fmt: skip


_AXES = (
    "step", "relative_time_wall", "relative_time_process", "wall_time", "global_step", "epoch", "timestamp",
)  # fmt: skip


def plain(name: str) -> str:
    """'Training FLOP' -> 'training_flop', 'config.nParams' -> 'n_params', 'val/loss' -> 'val_loss'."""
    name = _FOLDERS.sub("", name.strip().removeprefix("#").strip())
    if len(name) == 1:
        return name
    return re.sub(r"[^\w%^]+", "_", _CAMEL.sub("_", name).lower()).strip("_")


@dataclass(frozen=True)
class Header:
    """A column's name without the unit that it holds, the unit's factor, and the unit as it stands there."""

    name: str
    factor: float = 1.0
    unit: str = ""


def header(column: str) -> Header:
    """'params_M' -> params in millions, 'Tokens (B)' -> tokens in billions, 'compute_pf_days' -> PF-days."""
    name = plain(column)
    if match := _FLOPS.fullmatch(name):
        base, size, _, days = match.groups()
        unit = f"{size[0].upper()}{'F-days' if days else 'FLOP'}"
        base = (base or "flops").removesuffix("_in")
        base = base.upper() if len(base) == 1 else base
        whole = base if days or base in SYNONYMS["flops"] else f"{base}_flops"
        return Header(whole, FLOPS_UNITS[unit.lower()], unit)
    if name in PARAMETER_COUNTS or any(name in names for names in SYNONYMS.values()):
        return Header(name)
    for pattern, base, unit in ((_AFTER, 1, 2), (_BEFORE, 2, 1)):  # compiled where a name is not known
        if match := re.fullmatch(pattern, name):
            bare = match[base].upper() if len(match[base]) == 1 else match[base]
            return Header(bare, MULTIPLES[match[unit]], match[unit])
    return Header(name)


def device_time(column: str) -> bool:
    """Whether a column is named like hours of devices, which are no FLOPs."""
    return bool(_DEVICE_TIME.search(plain(column)))


def loss_unit(column: str) -> str:
    """The unit that a column of losses is named after, such as bits per byte; nats per token if none."""
    name = f"_{plain(column)}_".replace("%", "_percent_")
    return next((unit for words, unit in _LOSS_UNITS if re.search(rf"_({words})_", name)), "nats per token")


def is_panel(columns: Sequence[str]) -> bool:
    """Whether these are what W&B writes for a panel: an axis, then 'RUN - METRIC', __MIN and __MAX a run."""
    known = [column for column in columns[1:] if any(plain(column) in names for names in SYNONYMS.values())]
    runs = any(" - " in column for column in columns[1:])
    return len(columns) > 1 and (runs or plain(columns[0]) in _AXES) and not known


def candidates(name: str, columns: Iterable[str]) -> list[str]:
    """The ``columns`` that are well-known names of our ``name``, those in a unit too where it is a count."""
    known = SYNONYMS.get(name, (name,))
    matches = [column for column in columns if plain(column) in known]
    if matches or name not in COUNTED:
        return matches
    return [column for column in columns if _total(column) and header(column).name in known]


def _total(column: str) -> bool:
    """Whether a name such as 'total_gflops' may be of a whole run; a bare 'tflops' is a speed."""
    return not re.fullmatch(r"[gtpez]flops?(_s)?", plain(column))


def may_be_setting(column: str) -> bool:
    """Whether a column of numbers may be a setting of training by its name, as most names may."""
    name = plain(column)
    return name in SETTINGS_BY_NAME or not (_NO_SETTINGS & set(name.split("_")) or name in PARAMETER_COUNTS)


def is_share(column: str) -> bool:
    """Whether a column is named like a part of a mixture of data: code_share, frac_web, mix_ratio."""
    return bool(_SHARES & set(plain(column).split("_")))


def other_counts(columns: Iterable[str], column_of: Mapping[str, str]) -> list[str]:
    """Columns that count parameters too, and are not among those taken."""
    used = set(column_of.values())
    return [column for column in columns if plain(column) in PARAMETER_COUNTS and column not in used]
