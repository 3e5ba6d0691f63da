"""Offsets with acknowledge types: as runs of one type, and as request ranges.

KIP-932 ("ShareFetch API") requires ascending ranges without overlap; each has one
acknowledge type for all of its offsets, or one per offset.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from sharecons.protocol.messages import Range

__all__ = ["GAP", "Run", "coalesce", "ranges_of", "runs_of", "split"]

GAP: Final = 0
"""The type of an offset without a record; the broker archives it."""

RANGE_COST: Final = 18
"""Bytes of a range without its types: two offsets, a length, tagged fields."""


class Run(NamedTuple):
    """Offsets with one acknowledge type; both ends are included."""

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


def ranges_of(runs: Iterable[Run]) -> tuple[Range, ...]:
    """Return ascending runs as ranges, in the form with fewer bytes."""
    ranges: list[Range] = []
    block: list[Run] = []
    for run in coalesce(runs):
        if block and block[-1].last + 1 != run.first:
            ranges += _block(block)
            block = []
        block.append(run)
    return (*ranges, *_block(block)) if block else tuple(ranges)


def _block(runs: list[Run]) -> list[Range]:
    """Return adjacent runs as one range, or as one range each."""
    length = runs[-1].last - runs[0].first + 1
    if len(runs) == 1 or length > RANGE_COST * (len(runs) - 1):
        return [Range(run.first, run.last, bytes((run.kind,))) for run in runs]
    kinds = b"".join(bytes((run.kind,)) * (run.last - run.first + 1) for run in runs)
    return [Range(runs[0].first, runs[-1].last, kinds)]


def runs_of(ranges: Iterable[Range]) -> list[Run]:
    """Return ranges as runs."""
    runs: list[Run] = []
    for first, last, kinds in ranges:
        if len(kinds) == 1:
            runs.append(Run(first, last, kinds[0]))
        else:
            each = (Run(first + i, first + i, kind) for i, kind in enumerate(kinds))
            runs += coalesce(each)
    return runs


def split(ranges: tuple[Range, ...]) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Split ranges in two halves; they must have at least two offsets."""
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
