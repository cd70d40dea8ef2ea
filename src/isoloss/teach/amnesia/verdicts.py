"""Sentences about outcomes. Each follows from the numbers, and turns round when they are swapped."""

from collections.abc import Sequence
from statistics import median

from isoloss.teach.amnesia.outcomes import Outcome, best, cells, order_of_arrival, outcomes, sooner
from isoloss.teach.result import Basis, Row
from isoloss.teach.shares import gap
from isoloss.text import percent, plural

SECOND_LOOK = 0.025


def strings(one: Outcome) -> str:
    return f"n = {one.n:,} unseen strings a seed"


def span(values: Sequence[float]) -> str:
    low, high = percent(min(values), 1), percent(max(values), 1)
    return low if low == high else f"{low} to {high}"


def account(rates: Sequence[Outcome]) -> str:
    """What one side did at its best rate, and how much the rate mattered."""
    one = best(rates)
    return f"{one.side} ({one.params:,} parameters, rate {one.rate:g}) {_course(one)}{_over_rates(rates)}."


def _course(one: Outcome) -> str:
    ended = f"ended at {span([share.value for share in one.shares])} ({strings(one)})"
    if not one.arrived:
        seeds = plural(one.seeds, "seed")
        return f"did not reach 99% within {plural(one.last, 'update')} in any of {seeds}: it {ended}"
    when = f"median after {median(one.arrived):,.0f} updates"
    reached = f"reached 99% in {len(one.arrived)} of {plural(one.seeds, 'seed')}, {when}"
    if one.all_arrived:
        return f"{reached} ({strings(one)})"
    return f"{reached}, in the others not within {plural(one.last, 'update')}: it {ended}"


def _over_rates(rates: Sequence[Outcome]) -> str:
    if len(rates) < 2:
        return ""
    each = ", ".join(f"{percent(one.mean, 1)} at {one.rate:g}" for one in sorted(rates, key=lambda o: o.rate))
    return f"; mean over seeds by learning rate: {each}"


def verdict(a: Outcome, b: Outcome) -> str:
    """Which of two sides is ahead: by updates where all seeds arrived, else by the share at the end.

    Where the shares leave it open, by the order of arrival, at half the error rate as it is the second look.
    """
    if min(a.seeds, b.seeds) < 2:
        return f"{a.side} against {b.side}: one seed a side gives no interval and no verdict."
    if a.all_arrived and b.all_arrived:
        return _by_updates(a, b)
    later, p = order_of_arrival(a, b)
    if p < SECOND_LOOK and not gap(a.shares, b.shares).decided:
        return _by_order(*((b, a) if later > 0 else (a, b)), p)
    return _by_share(a, b)


def headline(text: str) -> str:
    """A verdict without its numbers, for the title of a figure that shows them."""
    return text.split(": ")[0]


def _by_updates(a: Outcome, b: Outcome) -> str:
    found, of = sooner(a, b), f"{plural(a.seeds, 'seed')} a side, {strings(a)}"
    if not found.decided:
        return (
            f"No clear difference between {a.side} and {b.side}: both reached 99%, "
            f"{found.value:+,.0f} updates apart (95% t interval {found.low:+,.0f} to "
            f"{found.high:+,.0f}, {of})."
        )
    first, second = (a, b) if found.value < 0 else (b, a)
    low, high = sorted((abs(found.low), abs(found.high)))
    return (
        f"{first.side} is ahead of {second.side}: both reached 99%, it did so "
        f"{abs(found.value):,.0f} updates sooner (95% t interval {low:,.0f} to {high:,.0f}, {of})."
    )


def _by_order(first: Outcome, second: Outcome, p: float) -> str:
    within = plural(max(first.last, second.last), "update")
    return (
        f"{first.side} is ahead of {second.side}: within {within} 99% was reached by {_arrivals(first)}, "
        f"against {_arrivals(second)} (order of arrival, permutation test p = {p:.3f}, "
        f"{plural(first.seeds, 'seed')} a side, {strings(first)})."
    )


def _arrivals(one: Outcome) -> str:
    when = f" (median {median(one.arrived):,.0f} updates)" if one.arrived else ""
    return f"{len(one.arrived)} of {plural(one.seeds, 'seed')}{when}"


def _by_share(a: Outcome, b: Outcome) -> str:
    found, of = gap(a.shares, b.shares), f"{plural(a.seeds, 'seed')} a side, {strings(a)}"
    if not found.decided:
        value, low, high = (f"{points(share):+.1f}" for share in (found.value, found.low, found.high))
        return (
            f"No clear difference between {a.side} and {b.side} within "
            f"{plural(max(a.last, b.last), 'update')}: {value} points of accuracy "
            f"(95% t interval {low} to {high}, {of})."
        )
    first, second = (a, b) if found.value > 0 else (b, a)
    low, high = sorted((abs(points(found.low)), abs(points(found.high))))
    return (
        f"{first.side} is ahead of {second.side}: {abs(100 * found.value):.1f} points more right within "
        f"{plural(max(a.last, b.last), 'update')} (95% t interval {low:.1f} to {high:.1f}, {of})."
    )


def points(difference: float) -> float:
    """Of accuracy, which differ by at most 100; a t interval does not know that."""
    return 100 * max(-1.0, min(1.0, difference))


def counted(rows: Sequence[Row], seeds: int) -> Basis:
    n = rows[0]["n"] if rows else 1
    return Basis(n=n, units="unseen strings a point", seeds=seeds, interval="Wilson 95% interval")


def bests(rows: Sequence[Row]) -> dict[str, Outcome]:
    """Each side of a cell at its best rate."""
    return {side: best(rates) for side, rates in outcomes(rows).items()}


def table_lines(rows: Sequence[Row], names: Sequence[str], marks: Sequence[tuple[str, str]]) -> list[str]:
    """The terminal's picture: a bar a side at its best rate. ``marks``: column and name of each baseline."""
    lines: list[str] = []
    for key, own in cells(rows, names).items():
        lines.append(", ".join(f"{name} {value}" for name, value in zip(names, key, strict=True)))
        for side, one in bests(own).items():
            low, high = min(s.interval[0] for s in one.shares), max(s.interval[1] for s in one.shares)
            lines.append(
                f"  {side:<22} {bar(one.mean)} {percent(one.mean, 1):>8}  "
                f"{percent(low, 1)} to {percent(high, 1)}"
                f"  rate {one.rate:g}, {one.last:,} updates"
            )
        lines.extend(
            f"  {name:<22} {bar(own[0][column])} {percent(own[0][column], 1):>8}" for column, name in marks
        )
    return lines


def bar(share: float, width: int = 30) -> str:
    full = round(width * share)
    return "#" * full + "." * (width - full)
