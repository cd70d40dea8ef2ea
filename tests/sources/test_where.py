"""Expressions that keep rows: what compares columns is taken, what could read anything else is not."""

import pytest

from isoloss.errors import InputError
from isoloss.sources.where import check_where


@pytest.mark.parametrize(
    "where",
    [
        "loss < 5",
        "cooled AND family IN ('lstm', 'looped')",
        '"Model Size" > 1e8 OR NOT params BETWEEN 1 AND 2',
        "lower(arch) LIKE 'llama%'",
        "round(log10(params)) = 8",
        "name = 'select; from -- nowhere'",
        'abs("from") > 2',
    ],
)
def test_comparisons_come_back_as_they_are(where):
    assert check_where(where) == where


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("loss < (SELECT min(loss) FROM runs)", "SELECT"),
        ("1 = 1 UNION ALL", "UNION"),
        ("read_csv('/etc/passwd') > 0", "no function read_csv"),
        ("\"read_csv\"('x') > 0", 'no function "read_csv"'),
        ("loss < 5; loss > 2", "several statements"),
        ("loss < 5 -- and more", "comments"),
        ("loss /* x */ < 5", "comments"),
    ],
)
def test_what_reads_anything_else_is_refused_by_name(where, reason):
    with pytest.raises(InputError, match=reason) as caught:
        check_where(where)
    assert caught.value.where == where
