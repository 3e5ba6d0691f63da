"""Acknowledgement batches, and which of them share a request.

Theory of operation
-------------------
A broker applies a partition's acknowledgements all or nothing (measured on 4.3.0): one
offset without a lock makes it reject all of them. So batches near their lock's deadline
are sent first, in a request without the others, and batches past it last, also without
others. A batch that was rejected once is sent alone afterwards. Two leases with
overlapping offsets do not share a request either: a record whose lock has expired could
have been acquired by this member again. Once it has been, an acknowledgement of the
earlier delivery is not sent (`split_reacquired`): a broker knows the member and the
offset of a lock, not its delivery, and would apply it to the later one.
"""

from collections.abc import Iterable, Sequence
from typing import Final, final

from sharecons._record import RELEASE, RENEW
from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.ranges import ranges_of
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
)
from sharecons.protocol.acknowledge.results import results_of
from sharecons.protocol.acknowledge.runs import GAP, Run, partition_runs, split
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import Range

__all__ = ["AckBatch", "choose_batches", "merge_ranges"]

NEAR_DEADLINE: Final = 1.0
"""Seconds before the lock's deadline in which the broker could reject an
acknowledgement: twice the longest fetch that it can wait behind."""

MAX_PASSED_OVER: Final = 4
"""How many requests with more urgent batches can pass a batch over."""

MAX_SPLITS: Final = 32
"""How many times a batch and its parts are split in total: enough to isolate two bad
offsets among 2,000 (the broker's default limit of records in flight)."""


@final
class SplitBudget:
    """How many splits are left to a batch and its parts."""

    __slots__ = ("splits",)

    def __init__(self) -> None:
        self.splits = MAX_SPLITS


@final
class AckBatch:
    """A part of a lease that is acknowledged together.

    Attributes:
        waiters: the commits that wait for its result.
        rejected: the broker rejected it once, so it is sent alone.
        passed_over: how many requests were sent without it since it was queued.
    """

    __slots__ = (
        "budget",
        "deadline",
        "lease",
        "passed_over",
        "rejected",
        "runs",
        "waiters",
    )

    def __init__(self, lease: Lease, runs: Sequence[Run], deadline: float) -> None:
        self.lease = lease
        self.runs = runs
        self.deadline = deadline
        self.waiters: tuple[CommitWaiter, ...] = ()
        self.rejected = False
        self.passed_over = 0
        self.budget = SplitBudget()

    @property
    def has_renewals(self) -> bool:
        return any(run.kind == RENEW for run in self.runs)

    @property
    def has_releases(self) -> bool:
        return any(run.kind == RELEASE for run in self.runs)

    @property
    def record_count(self) -> int:
        """The number of records, without gaps and records that were given back."""
        return sum(
            last - first + 1
            for first, last, kind in self.runs
            if kind != GAP and first < self.lease.given_back_from
        )

    def add_waiters(self, waiters: tuple[CommitWaiter, ...]) -> "AckBatch":
        """Add commits that wait for the result; return the batch."""
        self.waiters += waiters
        for waiter in waiters:
            waiter.outstanding += 1
        return self

    def results(self, error: AcknowledgeFailure | None) -> list[AcknowledgeResult]:
        return results_of(self.lease, self.runs, error)

    def split_in_half(self) -> "list[AckBatch]":
        """Return two parts; none if it is one offset, or no split is left."""
        single = len(self.runs) == 1 and self.runs[0].first == self.runs[0].last
        if single or self.budget.splits == 0:
            return []
        self.budget.splits -= 1
        return self._parts(*split(self.runs))

    def split_renewals(self) -> "list[AckBatch]":
        """Return the part with the renewals and the part without, if not empty."""
        kinds: dict[bool, list[Run]] = {}
        for run in self.runs:
            kinds.setdefault(run.kind == RENEW, []).append(run)
        return self._parts(*kinds.values())

    def split_reacquired(
        self, leases: Iterable[Lease]
    ) -> "tuple[AckBatch | None, AckBatch | None]":
        """Return the part whose offsets later leases have, and the rest; None if empty.

        Args:
            leases: the leases of this member with redelivered records.
        """
        ranges = [
            (first, last)
            for lease in leases
            if lease.share_partition == self.lease.share_partition
            and lease.locks.requested_at > self.lease.locks.requested_at
            for first, last, _ in lease.acquired
        ]
        inside, outside = partition_runs(self.runs, ranges) if ranges else ([], [])
        if not inside:
            return None, self
        parts = self._parts(*(runs for runs in (inside, outside) if runs))
        return parts[0], parts[1] if outside else None

    def urgency(self, now: float) -> int:
        """Return 0 near the deadline, 1 before, 2 after it; lower ones go first."""
        left = self.deadline - now
        if left <= 0:
            return 2
        return 0 if left < NEAR_DEADLINE else 1

    def can_join(self, batches: Sequence["AckBatch"]) -> bool:
        """Return whether it can share a request with these batches of its partition."""
        if not batches:
            return True
        if self.rejected or any(other.rejected for other in batches):
            return False
        return all(
            other.lease is self.lease or self._is_disjoint(other) for other in batches
        )

    def _is_disjoint(self, other: "AckBatch") -> bool:
        return (
            other.runs[-1].last < self.runs[0].first
            or self.runs[-1].last < other.runs[0].first
        )

    def _parts(self, *parts: Sequence[Run]) -> "list[AckBatch]":
        # Waiters count batches, of which one becomes several.
        for waiter in self.waiters:
            waiter.outstanding += len(parts) - 1
        return [self._part(runs) for runs in parts]

    def _part(self, runs: Sequence[Run]) -> "AckBatch":
        part = AckBatch(self.lease, runs, self.deadline)
        part.waiters = self.waiters
        part.rejected = self.rejected
        part.budget = self.budget
        return part


def choose_batches(
    queued: Sequence[AckBatch], now: float
) -> tuple[dict[SharePartition, list[AckBatch]], list[AckBatch]]:
    """Return the batches for the next request, by partition, and the others."""
    urgencies = _urgencies(queued, now)
    chosen: dict[SharePartition, list[AckBatch]] = {}
    left: list[AckBatch] = []
    for batch in queued:
        share_partition = batch.lease.share_partition
        others = chosen.get(share_partition, [])
        if batch.urgency(now) == urgencies[share_partition] and batch.can_join(others):
            chosen.setdefault(share_partition, []).append(batch)
            batch.passed_over = 0
        else:
            left.append(batch)
            batch.passed_over += 1
    return chosen, left


def _urgencies(waiting: Sequence[AckBatch], now: float) -> dict[SharePartition, int]:
    """Return the urgency of the batches to send next, by partition."""
    urgencies: dict[SharePartition, int] = {}
    overdue: dict[SharePartition, int] = {}
    for batch in waiting:
        share_partition, urgency = batch.lease.share_partition, batch.urgency(now)
        known = urgencies.get(share_partition, urgency)
        urgencies[share_partition] = min(urgency, known)
        if batch.passed_over >= MAX_PASSED_OVER:
            overdue.setdefault(share_partition, urgency)
    return urgencies | overdue


def merge_ranges(batches: Sequence[AckBatch]) -> tuple[Range, ...]:
    """Return the ranges of batches that share a request."""
    if len(batches) == 1:
        return ranges_of(batches[0].runs)
    return ranges_of(sorted(run for batch in batches for run in batch.runs))
