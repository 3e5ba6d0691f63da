"""Leases with a recording owner, and calls of their owner."""

import itertools
from collections.abc import Sequence

from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.protocol.acknowledge.ranges import ranges_of
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.acknowledge.runs import Run
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW
from tests.protocol.message_factories import P0, TOPIC

__all__ = [
    "ACKNOWLEDGE_TYPES",
    "TERMINAL_TYPES",
    "TYPE_PAIRS",
    "RecordingOwner",
    "lease_of",
    "lease_of_ten",
    "lose_locks",
    "packed_lease",
    "settle",
    "sparse_lease",
    "take_runs",
]

ACKNOWLEDGE_TYPES = (ACCEPT, RELEASE, REJECT, RENEW)
TERMINAL_TYPES = (ACCEPT, RELEASE, REJECT)
TYPE_PAIRS = list(itertools.product(ACKNOWLEDGE_TYPES, ACKNOWLEDGE_TYPES))


class RecordingOwner:
    """An owner that records its calls."""

    def __init__(self) -> None:
        self.renewable = True
        self.now = 0.0
        self.result_log = ResultLog(lambda: None, lambda: self.now)
        self.notifications = 0
        self.late_acks: list[Run] = []
        self.delays: list[tuple[list[int], float]] = []

    def on_acknowledged(self, lease: Lease) -> None:
        self.notifications += 1

    def on_delayed(self, lease: Lease, offsets: Sequence[int], due: float) -> None:
        self.delays.append((list(offsets), due))

    def forget_expired(self, now: float) -> None:
        pass

    def reject_late_ack(self, lease: Lease, runs: Sequence[Run]) -> None:
        self.late_acks += runs


def packed_lease(
    *acquired: tuple[int, int, int], owner: RecordingOwner | None = None
) -> Lease:
    return Lease(
        topic=TOPIC,
        share_partition=P0,
        acquired=acquired or ((0, 9, 1),),
        payload=b"records",
        locks=LockTimes(0.0, 0.0, 30.0),
        lock_scope=LockScope(),
        owner=owner or RecordingOwner(),
    )


def lease_of(*offsets: int, owner: RecordingOwner | None = None) -> Lease:
    lease = packed_lease((offsets[0], offsets[-1], 1), owner=owner)
    lease.set_offsets(offsets)
    return lease


def lease_of_ten(owner: RecordingOwner | None = None) -> Lease:
    return lease_of(*range(10), owner=owner)


def sparse_lease(owner: RecordingOwner | None = None) -> Lease:
    """Return a lease of records with gaps between them, as after compaction."""
    return lease_of(0, 1, 4, 5, 9, owner=owner)


def take_runs(lease: Lease) -> list[Run]:
    """Return the runs to send, with any deadline."""
    return sorted(run for _, runs in lease.take_runs() for run in runs)


def settle(lease: Lease, runs: Sequence[Run], *, renewed_until: float = 0.0) -> None:
    lease.on_settled(ranges_of(runs), renewed_until=renewed_until)


def lose_locks(lease: Lease) -> list[Run]:
    lease.lock_scope.ended = True
    return lease.abandon()
