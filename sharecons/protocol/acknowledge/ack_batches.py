"""Pieces: what is acknowledged together, and what may share a request.

Rule 1: which pieces the next request carries is decided here.
Rule 2: this file does not know what became of a piece; `acknowledgements` does.

Theory of operation
-------------------
A broker applies a partition's acknowledgements all or nothing (measured on 4.3.0):
one offset whose lock has ended spoils all those beside it. So what is near its
lock's end travels apart from the rest and first, and what is past it apart and
last: last, but not never. What was refused once travels alone from then on. Nor do
two leases share a request that may have an offset in common: a lock of ours that
ended may have become ours again since.
"""

from collections.abc import Sequence
from typing import Final, final

from sharecons._record import RELEASE, RENEW
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.ranges import GAP, Run, ranges_of, runs_of, split
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeError,
    AcknowledgeResult,
)
from sharecons.protocol.acknowledge.results import CommitWaiter, results_of
from sharecons.protocol.messages import Range, SharePartition

__all__ = ["AckBatch", "choose_batches", "merge_ranges"]

NEAR_DEADLINE: Final = 1.0
"""Seconds before a lock's end in which an acknowledgement is not to be trusted:
twice the longest fetch that it may wait behind."""

MAX_PASSED_OVER: Final = 4
"""How many requests with something more urgent a piece lets pass."""

MAX_SPLITS: Final = 32
"""How often a piece and its parts are halved, all in all: enough to single out two
bad offsets among 2,000 (the broker's default window)."""


@final
class SplitBudget:
    """How many halvings are left to a piece and its parts."""

    __slots__ = ("splits",)

    def __init__(self) -> None:
        self.splits = MAX_SPLITS


@final
class AckBatch:
    """A part of a lease that is acknowledged together.

    Attributes:
        tickets: who waits for what becomes of it.
        refused: it travels alone.
        passed_over: how many requests went without it since it is waiting.
    """

    __slots__ = (
        "budget",
        "deadline",
        "lease",
        "passed_over",
        "ranges",
        "rejected",
        "waiters",
    )

    def __init__(
        self, lease: Lease, ranges: tuple[Range, ...], deadline: float
    ) -> None:
        self.lease = lease
        self.ranges = ranges
        self.deadline = deadline
        self.waiters: tuple[CommitWaiter, ...] = ()
        self.rejected = False
        self.passed_over = 0
        self.budget = SplitBudget()

    @property
    def has_renewals(self) -> bool:
        return any(RENEW in r.kinds for r in self.ranges)

    @property
    def has_releases(self) -> bool:
        return any(RELEASE in r.kinds for r in self.ranges)

    @property
    def record_count(self) -> int:
        """How many records it is about; gaps are none."""
        count = 0
        for first, last, kinds in self.ranges:
            if len(kinds) > 1:
                count += len(kinds) - kinds.count(GAP)
            elif kinds[0] != GAP:
                count += last - first + 1
        return count

    def add_waiters(self, waiters: tuple[CommitWaiter, ...]) -> "AckBatch":
        """Note who waits for it too; gives the piece."""
        self.waiters += waiters
        for ticket in waiters:
            ticket.outstanding += 1
        return self

    def results(self, error: AcknowledgeError | None) -> list[AcknowledgeResult]:
        return results_of(self.lease, runs_of(self.ranges), error)

    def split_in_half(self) -> "list[AckBatch]":
        """Give its parts; none if it is one offset, or the budget is spent."""
        first = self.ranges[0]
        single = len(self.ranges) == 1 and first.first_offset == first.last_offset
        if single or self.budget.splits == 0:
            return []
        self.budget.splits -= 1
        return self._parts(*split(self.ranges))

    def split_renewals(self) -> "list[AckBatch]":
        """Give a part that renews, and one that does not; either may be all of it."""
        kinds: dict[bool, list[Run]] = {}
        for run in runs_of(self.ranges):
            kinds.setdefault(run.kind == RENEW, []).append(run)
        return self._parts(*map(ranges_of, kinds.values()))

    def urgency(self, now: float) -> int:
        left = self.deadline - now
        if left <= 0:
            return 2
        return 0 if left < NEAR_DEADLINE else 1

    def can_join(self, batches: Sequence["AckBatch"]) -> bool:
        """True if it may share a request with these of its partition."""
        if not batches:
            return True
        if self.rejected or any(other.rejected for other in batches):
            return False
        return all(
            other.lease is self.lease or self._is_disjoint(other) for other in batches
        )

    def _is_disjoint(self, other: "AckBatch") -> bool:
        return (
            other.ranges[-1].last_offset < self.ranges[0].first_offset
            or self.ranges[-1].last_offset < other.ranges[0].first_offset
        )

    def _parts(self, *parts: tuple[Range, ...]) -> "list[AckBatch]":
        for ticket in self.waiters:
            ticket.outstanding += len(parts) - 1
        return [self._part(ranges) for ranges in parts]

    def _part(self, ranges: tuple[Range, ...]) -> "AckBatch":
        part = AckBatch(self.lease, ranges, self.deadline)
        part.waiters = self.waiters
        part.rejected = self.rejected
        part.budget = self.budget
        return part


def choose_batches(
    queued: Sequence[AckBatch], now: float
) -> tuple[dict[SharePartition, list[AckBatch]], list[AckBatch]]:
    """Give those for the next request, by partition, and those that wait on."""
    urgencies = _urgencies(queued, now)
    chosen: dict[SharePartition, list[AckBatch]] = {}
    left: list[AckBatch] = []
    for piece in queued:
        share_partition = piece.lease.share_partition
        others = chosen.get(share_partition, [])
        if piece.urgency(now) == urgencies[share_partition] and piece.can_join(others):
            chosen.setdefault(share_partition, []).append(piece)
            piece.passed_over = 0
        else:
            left.append(piece)
            piece.passed_over += 1
    return chosen, left


def _urgencies(waiting: Sequence[AckBatch], now: float) -> dict[SharePartition, int]:
    """Say which kind of piece each partition's turn is."""
    urgencies: dict[SharePartition, int] = {}
    overdue: dict[SharePartition, int] = {}
    for piece in waiting:
        share_partition, urgency = piece.lease.share_partition, piece.urgency(now)
        known = urgencies.get(share_partition, urgency)
        urgencies[share_partition] = min(urgency, known)
        if piece.passed_over >= MAX_PASSED_OVER:
            overdue.setdefault(share_partition, urgency)
    return urgencies | overdue


def merge_ranges(batches: Sequence[AckBatch]) -> tuple[Range, ...]:
    """Give the ranges of pieces that share a request."""
    if len(batches) == 1:
        return batches[0].ranges
    return ranges_of(sorted(run for p in batches for run in runs_of(p.ranges)))
