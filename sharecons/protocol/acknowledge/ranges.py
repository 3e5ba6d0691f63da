"""Offsets with an acknowledge type, as runs, and as the ranges that the wire takes.

Rule 1: whatever makes the wire's ranges ascending, disjoint and short is here.
Rule 2: nothing here knows who asked for what.

KIP-932 ("ShareFetch API") wants ranges ascending and without overlap; each holds
one acknowledge type for all of its offsets, or one for each.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from sharecons.protocol.messages import Range

__all__ = ["GAP", "Run", "coalesce", "ranges_of", "runs_of", "split"]

GAP: Final = 0
"""The type for an offset that has no record; the broker archives it."""

RANGE_COST: Final = 18
"""Bytes of a range beside its types: two offsets, a length, tagged fields."""


class Run(NamedTuple):
    """Offsets of one kind, both ends included."""

    first: int
    last: int
    kind: int


def coalesce(runs: Iterable[Run]) -> list[Run]:
    """Join neighbours of one kind; the runs must be ascending."""
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1].last + 1 == run.first and joined[-1].kind == run.kind:
            joined[-1] = Run(joined[-1].first, run.last, run.kind)
        else:
            joined.append(run)
    return joined


def ranges_of(runs: Iterable[Run]) -> tuple[Range, ...]:
    """Write ascending runs as ranges, in the form that takes fewer bytes."""
    ranges: list[Range] = []
    block: list[Run] = []
    for run in coalesce(runs):
        if block and block[-1].last + 1 != run.first:
            ranges += _block(block)
            block = []
        block.append(run)
    return (*ranges, *_block(block)) if block else tuple(ranges)


def _block(runs: list[Run]) -> list[Range]:
    """Runs without a hole between them: as one range, or as one each."""
    length = runs[-1].last - runs[0].first + 1
    if len(runs) == 1 or length > RANGE_COST * (len(runs) - 1):
        return [Range(run.first, run.last, bytes((run.kind,))) for run in runs]
    kinds = b"".join(bytes((run.kind,)) * (run.last - run.first + 1) for run in runs)
    return [Range(runs[0].first, runs[-1].last, kinds)]


def runs_of(ranges: Iterable[Range]) -> list[Run]:
    """Read ranges back as runs."""
    runs: list[Run] = []
    for first, last, kinds in ranges:
        if len(kinds) == 1:
            runs.append(Run(first, last, kinds[0]))
        else:
            each = (Run(first + i, first + i, kind) for i, kind in enumerate(kinds))
            runs += coalesce(each)
    return runs


def split(ranges: tuple[Range, ...]) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Halve ranges by the number of their offsets; needs two offsets or more."""
    runs = runs_of(ranges)
    half = sum(run.last - run.first + 1 for run in runs) // 2
    left: list[Run] = []
    while half > 0:
        run = runs.pop(0)
        size = run.last - run.first + 1
        if size > half:
            runs.insert(0, Run(run.first + half, run.last, run.kind))
            run = Run(run.first, run.first + half - 1, run.kind)
        left.append(run)
        half -= run.last - run.first + 1
    return ranges_of(left), ranges_of(runs)
