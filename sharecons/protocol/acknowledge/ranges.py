"""The ranges of a request, made from runs with few bytes."""

from collections.abc import Iterable
from typing import Final

from sharecons.protocol.acknowledge.runs import Run, coalesce
from sharecons.protocol.share_messages import Range

__all__ = ["ranges_of"]

RANGE_COST: Final = 18
"""Bytes of a range without its types: two offsets, a length, tagged fields."""


def ranges_of(runs: Iterable[Run]) -> tuple[Range, ...]:
    """Return ascending runs as ranges of a request, with as few bytes as possible."""
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
