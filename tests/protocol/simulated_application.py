"""A simulated application that checks the result of each acknowledgement.

For each record of each lease it keeps the last acknowledgement. That must get exactly
one result: a success only if the broker applied it, a failure only if one was possible.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sharecons.errors import LockLostError, RecordStateError
from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.protocol.acknowledge.runs import GAP, Run
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import Acknowledgements
from sharecons.record import RELEASE, RENEW, AcknowledgeType
from tests.protocol.message_factories import acks_by_offset
from tests.protocol.simulated_broker import Broker

__all__ = ["Application", "HeldLease", "is_gap", "is_undeliverable"]

MARGIN = 0.01
"""Seconds by which the client's deadline of a renewal can exceed the broker's."""


def is_undeliverable(offset: int) -> bool:
    return offset % 11 == 5


def is_gap(offset: int) -> bool:
    return offset % 7 == 3 and not is_undeliverable(offset)


def spans(offsets: list[int]) -> list[tuple[int, int]]:
    return [(offset, offset) for offset in offsets]


@dataclass(eq=False)
class HeldLease:
    """A lease and its acknowledgements.

    Attributes:
        last: the last acknowledge type of each offset, except renewals.
        renewals: how often each was renewed.
        may_fail: offsets whose acknowledgement is allowed to fail.
    """

    lease: Lease
    offsets: list[int]
    last: dict[int, AcknowledgeType] = field(default_factory=dict)
    renewals: Counter[int] = field(default_factory=Counter)
    may_fail: set[int] = field(default_factory=set)

    @property
    def share_partition(self) -> SharePartition:
        return self.lease.share_partition

    def acquired(self) -> list[int]:
        return [
            o for first, last, _ in self.lease.acquired for o in range(first, last + 1)
        ]


class Application:
    """The application: its acknowledgements, and the results that it received."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.held: list[HeldLease] = []
        self.packed_without_locks: list[Lease] = []
        self.waiters: list[CommitWaiter] = []
        self.settled: Counter[tuple[SharePartition, int, int]] = Counter()
        self.succeeded: Counter[tuple[SharePartition, int, int]] = Counter()
        self.renewed: Counter[tuple[SharePartition, int]] = Counter()
        self.finished: Counter[tuple[SharePartition, int]] = Counter()

    # Actions.

    def unpack(self, lease: Lease) -> None:
        held = HeldLease(lease, [])
        for offset in held.acquired():
            if is_undeliverable(offset):
                held.last[offset] = RELEASE
            elif not is_gap(offset):
                held.offsets.append(offset)
        gaps = [offset for offset in held.acquired() if is_gap(offset)]
        lease.set_offsets(
            held.offsets,
            gaps=spans(gaps),
            undeliverable=[Run(*span, RELEASE) for span in spans([*held.last])],
        )
        self._hold(held)

    def acknowledge(self, held: HeldLease, index: int, kind: AcknowledgeType) -> None:
        offset = held.offsets[index]
        try:
            held.lease.acknowledge(offset, kind)
        except LockLostError:
            assert held.lease.lock_scope.ended
            return
        except RecordStateError:
            assert held.last.get(offset, kind) != kind, (
                "no other type was acknowledged before"
            )
            return
        if kind == RENEW:
            # The last type counts: an unsent acknowledgement is withdrawn.
            held.last.pop(offset, None)
            held.renewals[offset] += 1
        else:
            held.last[offset] = kind

    def acknowledge_range(
        self, held: HeldLease, start: int, stop: int, kind: AcknowledgeType
    ) -> None:
        try:
            held.lease.acknowledge_open(start, stop, kind)
        except LockLostError:
            assert held.lease.lock_scope.ended
            held.lease.acknowledge_implicitly(start, stop, kind)
        for offset in held.offsets[start:stop]:
            if offset not in held.last:
                if kind == RENEW:
                    held.renewals[offset] += 1
                else:
                    held.last[offset] = kind

    def release_remaining(self, held: HeldLease) -> None:
        held.lease.release_remaining()
        for offset in held.offsets[held.lease.cursor :]:
            held.last.setdefault(offset, RELEASE)

    def release_packed(self, lease: Lease) -> None:
        held = HeldLease(lease, [])
        lease.release_remaining()
        held.last = dict.fromkeys(held.acquired(), RELEASE)
        self._hold(held)

    def _hold(self, held: HeldLease) -> None:
        if held.lease in self.packed_without_locks:
            held.may_fail.update(held.acquired())
        self.held.append(held)

    # Requests and results.

    def on_sent(self, acknowledgements: Acknowledgements) -> None:
        """Check that the application made each acknowledgement sent, and once."""
        for share_partition, ranges in acknowledgements.items():
            for offset, kind in acks_by_offset(ranges).items():
                self._check_sent(share_partition, offset, kind)

    def _check_sent(
        self, share_partition: SharePartition, offset: int, kind: int
    ) -> None:
        leases = self._leases_with(share_partition, offset)
        assert leases, "the offset belongs to no lease"
        if kind == GAP:
            assert is_gap(offset)
        elif kind == RENEW:
            assert any(held.renewals[offset] for held in leases)
        else:
            matching = [held for held in leases if held.last.get(offset) == kind]
            assert matching, "the application did not acknowledge this"
            done = self.finished[share_partition, offset]
            assert done < len([h for h in leases if offset in h.last]), "sent twice"

    def on_outcome(self, acknowledgements: Acknowledgements, *, may_fail: bool) -> None:
        """Count finished acknowledgements; `may_fail` if the result is unknown."""
        for share_partition, ranges in acknowledgements.items():
            for offset, kind in acks_by_offset(ranges).items():
                if kind not in (GAP, RENEW):
                    self.finished[share_partition, offset] += 1
                if may_fail:
                    for held in self._leases_with(share_partition, offset):
                        held.may_fail.add(offset)

    def allow_failures(self, packed: Iterable[Lease]) -> None:
        """Allow failures after locks were lost without the client's knowledge."""
        self.packed_without_locks += packed
        for held in self.held:
            held.may_fail.update(held.acquired())

    def on_results(self, results: list[AcknowledgeResult], now: float) -> None:
        for _, partition, first, last, kind, error in results:
            share_partition = next(
                p for p in self.broker.partitions if p.partition == partition
            )
            for offset in range(first, last + 1):
                if error is None:
                    self.succeeded[share_partition, offset, kind] += 1
                    applied = self.broker.partitions[share_partition].applied[
                        offset, kind
                    ]
                    assert self.succeeded[share_partition, offset, kind] <= applied
                elif kind != RENEW:
                    self._check_may_fail(share_partition, offset, kind, now)
                if kind == RENEW:
                    self.renewed[share_partition, offset] += 1
                else:
                    self.settled[share_partition, offset, kind] += 1

    def _check_may_fail(
        self, share_partition: SharePartition, offset: int, kind: int, now: float
    ) -> None:
        leases = self._leases_with(share_partition, offset)
        matching = [held for held in leases if held.last.get(offset) == kind]
        assert matching
        assert any(
            offset in held.may_fail
            or held.lease.lock_scope.ended
            or held.lease.deadline_of(offset) - MARGIN <= now
            or len(leases) > 1
            for held in matching
        ), f"{offset} failed without a reason"

    def _leases_with(
        self, share_partition: SharePartition, offset: int
    ) -> list[HeldLease]:
        return [
            h
            for h in self.held
            if h.share_partition == share_partition and offset in h.acquired()
        ]

    # Checks at the end.

    def check_all_settled(self) -> None:
        expected: Counter[tuple[SharePartition, int, int]] = Counter()
        for held in self.held:
            expected.update(
                (held.share_partition, o, int(kind)) for o, kind in held.last.items()
            )
        assert expected == +self.settled
        assert all(waiter.is_done for waiter in self.waiters)
        for waiter in self.waiters:
            assert waiter.outstanding == 0

    def check_renewals(self) -> None:
        matching: Counter[tuple[SharePartition, int]] = Counter()
        for held in self.held:
            for offset, count in held.renewals.items():
                matching[held.share_partition, offset] += count
        assert self.renewed <= matching
