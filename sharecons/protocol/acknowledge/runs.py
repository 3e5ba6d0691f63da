"""Runs: adjacent offsets with one acknowledge type."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

__all__ = ["GAP", "Run", "coalesce", "group_by_deadline", "partition_runs", "split"]

GAP: Final = 0
"""The type of an offset without a record; the broker archives it."""


class Run(NamedTuple):
    """Offsets with one acknowledge type; both ends are included.

    KIP-932 ("ShareFetch API") requires ascending ranges without overlap; each has one
    acknowledge type for all of its offsets, or one per offset: see `ranges_of`.
    """

    first: int
    last: int
    kind: int


def coalesce(runs: Iterable[Run]) -> list[Run]:
    """Join adjacent runs of one type; the runs must be ascending."""
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1].last + 1 == run.first and joined[-1].kind == run.kind:
            joined[-1] = Run(joined[-1].first, run.last, run.kind)
        else:
            joined.append(run)
    return joined


def group_by_deadline(
    runs: Iterable[Run], deadline_of: Callable[[int], float]
) -> list[tuple[float, list[Run]]]:
    """Return the runs by the deadlines of their offsets."""
    groups: dict[float, list[Run]] = {}
    for first, last, kind in sorted(runs):
        for offset in range(first, last + 1):
            group = groups.setdefault(deadline_of(offset), [])
            group.append(Run(offset, offset, kind))
    return [(deadline, coalesce(group)) for deadline, group in groups.items()]


def split(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Split runs in two halves; they must have at least two offsets."""
    right = list(runs)
    left: list[Run] = []
    half = sum(run.last - run.first + 1 for run in runs) // 2
    while half > 0:
        run = right.pop(0)
        size = run.last - run.first + 1
        if size > half:
            right.insert(0, Run(run.first + half, run.last, run.kind))
            run = Run(run.first, run.first + half - 1, run.kind)
        left.append(run)
        half -= run.last - run.first + 1
    return left, right


def partition_runs(
    runs: Iterable[Run], ranges: Sequence[tuple[int, int]]
) -> tuple[list[Run], list[Run]]:
    """Return the parts of ascending runs inside of these ranges, and outside.

    Args:
        ranges: first and last offset, both included; in any order.
    """
    inside: list[Run] = []
    outside: list[Run] = []
    for first, last, kind in runs:
        begin = first
        for low, high in sorted(ranges):
            low, high = max(low, begin), min(high, last)
            if low <= high:
                if begin < low:
                    outside.append(Run(begin, low - 1, kind))
                inside.append(Run(low, high, kind))
                begin = high + 1
        if begin <= last:
            outside.append(Run(begin, last, kind))
    return inside, outside
