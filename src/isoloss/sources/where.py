"""Which rows to keep: an expression over the table's columns, and nothing that could read anything else."""

import re

from isoloss.errors import InputError

# polars' SQL knows subqueries and functions that open files and addresses: rows need none of them.
FUNCTIONS = frozenset({
    "abs", "avg", "cast", "ceil", "coalesce", "concat", "count", "ends_with", "exp", "floor", "greatest",
    "if", "ifnull", "least", "left", "length", "ln", "log", "log10", "log2", "lower", "ltrim", "max",
    "median", "min", "mod", "nullif", "pow", "power", "quantile_cont", "regexp_like", "replace",
    "reverse", "right",
    "round", "rtrim", "sign", "sqrt", "starts_with", "stddev", "strpos", "substr", "sum", "trim", "upper",
})  # fmt: skip
WORDS = frozenset({
    "and", "between", "else", "ilike", "in", "like", "not", "or", "regexp", "rlike", "then", "when",
})  # fmt: skip
DIGITS = frozenset({
    "cast", "concat", "ends_with", "ilike", "left", "length", "like", "lower", "ltrim", "regexp",
    "regexp_like", "replace", "reverse", "right", "rlike", "rtrim", "starts_with", "strpos", "substr", "trim",
    "upper",
})  # fmt: skip
"""They read how a number is written."""
FORBIDDEN = frozenset({"from", "join", "over", "select", "union", "with", "exists", "values", "table"})

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[A-Za-z_]\w*|--|/\*|.", re.DOTALL)


def check_where(where: str) -> str:
    """``where`` as it is, if it compares and reckons with columns and reads nothing else.

    Raises InputError for subqueries, functions that are not in ``FUNCTIONS``, comments and second statements.
    """
    tokens = _tokens(where)
    for index, token in enumerate(tokens):
        word, following = token.lower(), tokens[index + 1 : index + 2]
        if word in FORBIDDEN:
            raise _refusal(where, f"{token.upper()} is not taken here")
        called = following == ["("] and re.fullmatch(r"[a-z_]\w*|\".*\"", word, re.DOTALL)
        if called and word not in FUNCTIONS | WORDS:
            raise _refusal(where, f"there is no function {token}")
        if word in (";", "--", "/*"):
            raise _refusal(where, "comments and several statements are not taken here")
    return where


def multiplies(where: str) -> bool:
    """Whether whole numbers grow in it, which past 9.2e18 would go on below zero: fractions then do not."""
    words = {token.lower() for token in _tokens(where)}
    return bool(words & {"*", "pow", "power", "sum"}) and not words & DIGITS


def _tokens(where: str) -> list[str]:
    return [token for token in _TOKEN.findall(where) if not token.isspace()]


def _refusal(where: str, what: str) -> InputError:
    return InputError(
        f"where does not take this: {what}",
        where=where[:200],
        mend="compare columns with values, such as \"cooled AND loss < 5 AND family IN ('lstm', 'looped')\"",
    )
