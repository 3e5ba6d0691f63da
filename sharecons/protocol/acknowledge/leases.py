"""A lease: the records of one partition that one response acquired, and their state.

A lease does not know how acknowledgements are sent. It holds offsets, not records:
records refer to their lease, and a cycle would wait for the garbage collector.

Each record has a state (`ack_states`). An implicit loop does nothing per record: it
moves `cursor`, and the records behind it are accepted a slice at a time. Gaps (offsets
without a record) and undecodable records are queued beside the states.

When the session ends, the lease is abandoned: verbs raise, and unsent acknowledgements
have failed.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, final

from sharecons import verb_errors
from sharecons._record import RELEASE, RENEW, AcknowledgeType, AckTarget
from sharecons.protocol.acknowledge.ack_states import (
    AFTER_RENEWAL,
    FAILED,
    KIND,
    LOST,
    RENEW_DELAYED,
    SENT,
    AckStates,
)
from sharecons.protocol.acknowledge.lease_owner import LeaseOwner
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.protocol.acknowledge.record_offsets import (
    NO_OFFSETS,
    RecordOffsets,
    record_offsets,
)
from sharecons.protocol.acknowledge.runs import GAP, Run, coalesce, group_by_deadline
from sharecons.protocol.partitions import SharePartition

__all__ = ["Lease"]

NO_LOCK: Final = -math.inf  # the deadline of locks that ended with their session
_NONE: Final = AckStates(0)  # of leases that are not decoded yet


@final
class Lease(AckTarget):
    """Records of one partition, acquired together.

    Attributes:
        topic, share_partition: the partition.
        acquired: ranges of first offset, last offset, delivery count, ascending.
        count: number of acquired offsets, with or without a record.
        highest_delivery_count: of any of them.
        payload: the bytes of the response, until the offsets are set.
        cursor: number of records that were returned to the application.
        locks: when they end.
        given_back_from: failures from this offset on are not reported (`give_back`).
        lock_scope, result_log: the session and consumer in which they were acquired.
        is_queued: the owner knows of pending acknowledgements.
    """

    __slots__ = (
        "_extra",
        "_has_renewals",
        "_is_packed",
        "_offsets",
        "_owner",
        "_states",
        "acquired",
        "count",
        "cursor",
        "given_back_from",
        "highest_delivery_count",
        "is_queued",
        "lock_scope",
        "locks",
        "payload",
        "result_log",
        "share_partition",
        "topic",
    )

    def __init__(
        self,
        *,
        topic: str,
        share_partition: SharePartition,
        acquired: tuple[tuple[int, int, int], ...],
        payload: bytes | memoryview,
        locks: LockTimes,
        lock_scope: LockScope,
        owner: "LeaseOwner[Lease]",
    ) -> None:
        self.topic = topic
        self.share_partition = share_partition
        self.acquired = acquired
        self.count = 0
        self.highest_delivery_count = 0
        for first, last, delivery_count in acquired:
            self.count += last - first + 1
            if delivery_count > self.highest_delivery_count:
                self.highest_delivery_count = delivery_count
        self.payload: bytes | memoryview = payload
        self.locks = locks
        self.lock_scope = lock_scope
        self.cursor = 0
        self.given_back_from: float = math.inf
        self.is_queued = False
        self._owner = owner
        self._is_packed = True
        self.result_log = owner.result_log
        self._states = _NONE
        self._offsets = NO_OFFSETS
        self._extra: list[Run] = []
        self._has_renewals = False

    @property
    def has_open(self) -> bool:
        """True if a record can still be acknowledged."""
        return self._is_packed or self._states.has_open

    @property
    def is_settled(self) -> bool:
        """True if the acknowledgements of all records have results."""
        return not (self._is_packed or self._extra) and self._states.all_settled

    @property
    def held_count(self) -> int:
        """The number of records whose locks are neither settled nor lost."""
        return self.count if self._is_packed else self._states.unsettled_count

    def unsettled_runs(self) -> list[Run]:
        """Return the records whose acknowledgements were not applied."""
        if self._states is _NONE:
            return [Run(first, last, GAP) for first, last, _ in self.acquired]
        found = self._states.unsettled_runs()
        return [run for part in found for run in self._offsets.runs(*part, GAP)]

    def is_delivered(self, offset: int) -> bool:
        start, stop = self._offsets.bounds(offset, offset)
        return start < stop <= self.cursor

    def is_open(self, offset: int) -> bool:
        """Return whether a record can still be acknowledged."""
        return self._states.is_open(self._offsets.index(offset))

    def deadline_of(self, offset: int) -> float:
        """Return when the lock of one record ends; NO_LOCK if its session has ended."""
        if self.lock_scope.ended or self.result_log.closed:
            return NO_LOCK
        return self.locks.of(offset)

    def remaining_of(self, offset: int) -> float:
        """Return the seconds until `deadline_of`; 0.0 if it has passed."""
        return max(0.0, self.deadline_of(offset) - self.result_log.clock())

    def holds(self, offset: int) -> bool:
        """Return whether the lock of a record that is not settled is still held."""
        return self.remaining_of(offset) > 0.0 and self.is_open(offset)

    # Calls of the consumer.

    def set_dense_offsets(self) -> None:
        """Set the offsets: one acquired range with a record at each offset."""
        self._is_packed, self.payload = False, b""
        self._states = AckStates(self.count)
        self._offsets = RecordOffsets(self.acquired[0][0], self.count)

    def set_offsets(
        self,
        offsets: Sequence[int],
        *,
        gaps: Sequence[tuple[int, int]] = (),
        undeliverable: Sequence[Run] = (),
    ) -> None:
        """Set the record offsets; queue gaps, and runs of undeliverable records."""
        self._is_packed, self.payload = False, b""
        self._states = AckStates(len(offsets))
        self._offsets = record_offsets(offsets)
        if gaps or undeliverable:
            self._extra += [Run(first, last, GAP) for first, last in gaps]
            self._extra += undeliverable
            self._notify_owner()

    def release_remaining(self) -> None:
        """Release the records that were not delivered."""
        if self._is_packed:
            self._is_packed, self.payload = False, b""
            self._extra += [Run(low, high, RELEASE) for low, high, _ in self.acquired]
            self._notify_owner()
        else:
            self._acknowledge_part(slice(self.cursor, self._offsets.count), RELEASE)

    def give_back(self) -> None:
        """Release the records that were not delivered, if a broker can hold them."""
        has_rest = self._is_packed or self.cursor < self._offsets.count
        now = self.result_log.clock()
        if has_rest and now < self.locks.held_until and not self.lock_scope.ended:
            self._owner.forget_expired(now)
            self.locks.given_back_at = now
            at = self.cursor
            self.given_back_from = float(self._offsets.offset(at) if at else 0)
            self.release_remaining()

    def acknowledge(self, offset: int, kind: AcknowledgeType) -> None:
        """Acknowledge one record; see `Record` for its guarantees and errors."""
        result_log = self.result_log
        offsets = self._offsets
        if result_log.is_guarded and kind != RENEW:
            raise verb_errors.guarded(kind, self._describe(offset))
        if result_log.this_thread() != result_log.thread:
            raise verb_errors.wrong_thread(kind, self._describe(offset))
        if (
            offsets.is_dense
            and not self.lock_scope.ended
            and not result_log.closed
            and self._states.extend_run(offset - offsets.base, kind)
        ):
            if not self.is_queued:
                self._notify_owner()
        else:
            self._acknowledge(offset, kind)

    def _acknowledge(self, offset: int, kind: AcknowledgeType) -> None:
        self._check_allowed(kind)
        self._abandon_if_ended()
        index = self._offsets.index(offset)
        state = self._states[index]
        if state < SENT:
            self._states.set_pending(index, kind)
            self._notify_owner()
        elif state == SENT | RENEW or state & AFTER_RENEWAL:
            if state & KIND != kind:
                self._states[index] = AFTER_RENEWAL | kind
        elif state == LOST or state & FAILED:
            what = self._describe(offset)
            raise verb_errors.lock_lost(kind, what, self.lock_scope.reason)
        elif state & KIND != kind:
            what = self._describe(offset)
            raise verb_errors.already_settled(kind, what, state & KIND)

    def release_later(self, offset: int, after: object) -> None:
        """Release one record after a delay in seconds; see `Record.release`."""
        delay = verb_errors.check_delay(after)
        self.acknowledge(offset, RELEASE)
        if delay and not self._delay([self._offsets.index(offset)], delay):
            raise verb_errors.already_settled(RELEASE, self._describe(offset), RELEASE)

    def release_open_later(self, start: int, stop: int, after: object) -> None:
        """Release the open records after a delay; raises as `acknowledge_open`."""
        delay = verb_errors.check_delay(after)
        indexes = [each for each in range(start, stop) if self._states.is_open(each)]
        self.acknowledge_open(start, stop, RELEASE)
        if delay:
            self._delay(indexes, delay)

    def hold(self, start: int, stop: int, seconds: float) -> None:
        """Keep the locks of the open records for some time, unless `reopen` ends it."""
        self._acknowledge_part(slice(start, stop), RELEASE)
        self._delay(list(range(start, stop)), seconds)

    def reopen(self, start: int, stop: int) -> bool:
        """End `hold`; return whether all of these records are open and locked."""
        self._states.reopen(slice(start, stop))
        return all(self.holds(self._offsets.offset(i)) for i in range(start, stop))

    def _delay(self, indexes: list[int], delay: float) -> bool:
        """Delay releases that are not sent; return whether there were any."""
        unsent = [index for index in indexes if self._states.delay(index)]
        if unsent:
            offsets = [self._offsets.offset(index) for index in unsent]
            self._owner.on_delayed(self, offsets, self.result_log.clock() + delay)
        return bool(unsent)

    def acknowledge_open(self, start: int, stop: int, kind: AcknowledgeType) -> None:
        """Acknowledge the open records, renewed ones too, from `start` to `stop`.

        Raises LockLostError if some of their locks were lost; others as `acknowledge`.
        """
        if self.result_log.this_thread() != self.result_log.thread:
            what = self._describe(self._offsets.offset(start))
            raise verb_errors.wrong_thread(kind, what)
        self._check_allowed(kind)
        part = slice(start, stop)
        if self._abandon_if_ended() and self._states.has_lost(part):
            what = f"records of {self._name}"
            raise verb_errors.lock_lost(kind, what, self.lock_scope.reason)
        self._acknowledge_part(part, kind)

    def acknowledge_implicitly(
        self, start: int, stop: int, kind: AcknowledgeType
    ) -> bool:
        """As `acknowledge_open`, but report lost locks as failed, and do not raise.

        For acknowledgements of the library, as in implicit mode. Does nothing once the
        consumer is closed, as the records were released. Return whether any was open.
        """
        if self.result_log.closed:
            return False
        return self._acknowledge_part(slice(start, stop), kind)

    # Calls of the batcher.

    def take_runs(self) -> list[tuple[float, list[Run]]]:
        """Return the pending runs by deadline, and set them sent."""
        self.is_queued = False
        runs, self._extra = self._extra, []
        for start, stop in self._states.pending_runs():
            runs += self._offsets.runs(start, stop, self._states.kind_at(start))
        self._states.set_sent()
        if self.locks.renewed:
            return group_by_deadline(runs, self.deadline_of)
        return [(self.locks.deadline, coalesce(sorted(runs)))] if runs else []

    def on_settled(self, runs: Iterable[Run], *, renewed_until: float = 0.0) -> None:
        """Settle these runs, whether applied or failed."""
        if not self._offsets.count:
            return
        for first, last, _ in runs:
            start, stop = self._offsets.bounds(first, last)
            if start < stop:
                if renewed_until:
                    self._note_renewals(slice(start, stop), renewed_until)
                self._states.settle(start, stop)
        if self._has_renewals and self._states.has_pending:
            self._notify_owner()  # acknowledged during the renewal

    def abandon(self) -> list[Run]:
        """Settle all records, as the locks are lost; return the unsent runs."""
        self._states.release_delayed()
        unsent = [run for _, runs in self.take_runs() for run in runs]
        self._is_packed = False
        self._states.abandon()
        return sorted(unsent)

    def fail_settled(self, runs: Iterable[Run]) -> None:
        """Change settled to failed in these runs, as their locks were lost."""
        for first, last, _ in runs:
            self._states.fail_settled(*self._offsets.bounds(first, last))

    def delayed_state(self, offset: int) -> int:
        """Return DELAYED, RENEW_DELAYED while it is renewed, or 0 if it is neither."""
        return self._states.delayed_state(self._offsets.index(offset))

    def renew_delayed(self, offsets: Iterable[int]) -> None:
        """Renew the locks of records in DELAYED."""
        self._has_renewals = True
        for offset in offsets:
            self._states[self._offsets.index(offset)] = RENEW_DELAYED
        self._notify_owner()

    @property
    def _name(self) -> str:
        return f"{self.topic}-{self.share_partition.partition}"

    def _describe(self, offset: int) -> str:
        return f"{self._name}@{offset}"

    def _notify_owner(self) -> None:
        if not self.is_queued:
            self._owner.on_acknowledged(self)  # this can raise
            self.is_queued = True

    def _acknowledge_part(self, part: slice, kind: AcknowledgeType) -> bool:
        if self._abandon_if_ended():
            self._reject_late_acks(part, kind)
            return False
        was_open = self._states.set_pending_if_open(part, kind)
        if was_open:
            self._notify_owner()
        return was_open

    def _abandon_if_ended(self) -> bool:
        """Abandon the lease if its session has ended; return whether it has."""
        if self.lock_scope.ended:
            self._states.abandon()
        return self.lock_scope.ended

    def _reject_late_acks(self, part: slice, kind: AcknowledgeType) -> None:
        runs: list[Run] = []
        for start, stop in self._states.lost_runs(part):
            runs += self._offsets.runs(start, stop, kind)
            if kind != RENEW:
                self._states.set_failed(slice(start, stop), kind)
        if runs:
            self._owner.reject_late_ack(self, runs)

    def _check_allowed(self, kind: AcknowledgeType) -> None:
        if self.result_log.closed:
            raise verb_errors.closed(kind, f"a record of {self._name}")
        if kind == RENEW:
            if not self._owner.renewable:
                raise verb_errors.not_renewable(f"a record of {self._name}")
            self._has_renewals = True

    def _note_renewals(self, part: slice, until: float) -> None:
        for start, stop in self._states.renewing_runs(part):
            for first, last, _ in self._offsets.runs(start, stop, RENEW):
                self.locks.renewed.update(dict.fromkeys(range(first, last + 1), until))
