"""A shell of `WorkerMachine` without I/O, and a broker's share partition."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sharecons.copies.dead_letter_headers import Origin
from sharecons.record import ACCEPT, REJECT, RELEASE, AcknowledgeType
from sharecons.worker.machine.actions import (
    Acknowledge,
    Action,
    CancelCall,
    Copy,
    LocksLost,
    OutcomeDecided,
    Stop,
)
from sharecons.worker.machine.item import Call, ItemState, WorkItem
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.topic_settings import TopicSettings
from sharecons.worker.machine.worker_machine import WorkerMachine
from sharecons.worker.outcomes import DeadLettered, LockLost
from sharecons.worker.positions import position
from sharecons.worker.retry_topics import retry_headers

__all__ = ["LOCK", "FakeRecord", "SimulatedWorker", "retry_record"]

LOCK: Final = 30.0
ORIGIN_TOPIC: Final = "sharecons.origin.topic"
DELIVERY_LIMIT: Final = 5

Position = tuple[str, int, int]


class FakeRecord:
    """One delivery of a record.

    Attributes:
        ends: how it was acknowledged, or "lost"; the contract allows one.
    """

    def __init__(
        self,
        offset: int = 0,
        *,
        topic: str = "orders",
        key: bytes | None = None,
        delivery_count: int = 1,
        lock_deadline: float = LOCK,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None:
        self.topic, self.partition, self.offset = topic, 0, offset
        self.key, self.value, self.headers = key, b"value", headers
        self.delivery_count, self.timestamp = delivery_count, 0
        self.lock_deadline = lock_deadline
        self.ends: list[AcknowledgeType | str] = []

    def __repr__(self) -> str:
        return f"{self.topic}-{self.offset} delivery {self.delivery_count}"


class SimulatedWorker:
    """Carries out the actions of a machine, and checks its contract.

    Args:
        settings: of the handler of "orders".
        others: of the handlers of other topics.

    Attributes:
        items: all records that were taken.
        assigned: calls that have not begun.
        running: calls whose handlers run; `cancelled` are a part of them.
        copies: the writes that have not ended.
        available: records that the broker delivers again, with their deliveries.
        finished: records that left the group.
    """

    def __init__(
        self,
        settings: HandlerSettings,
        others: Mapping[str, HandlerSettings] = MappingProxyType({}),
        *,
        concurrency: int = 3,
    ) -> None:
        self.topics = TopicSettings({"orders": settings, **others}, "billing")
        chances = itertools.cycle([0.0, 0.5, 1.0])
        self.machine = WorkerMachine(
            self.topics,
            concurrency=concurrency,
            max_bytes=1_000_000,
            chance=lambda: next(chances),
        )
        self.settings = settings
        self.concurrency = concurrency
        self.now = 0.0
        self.items: list[WorkItem] = []
        self.assigned: list[Call] = []
        self.running: list[Call] = []
        self.cancelled: list[Call] = []
        self.copies: list[Copy] = []
        self.available: dict[Position, tuple[int, bytes | None]] = {}
        self.finished: set[Position] = set()
        self.succeeded: set[WorkItem] = set()
        self.copied: set[WorkItem] = set()
        self.dead_lettered: set[Position] = set()
        self.accepts_copies = True
        self.log: Counter[str] = Counter()
        self._passed_over: Counter[HandlerSettings] = Counter()

    # Events.

    def _handler_of(self, record: FakeRecord) -> HandlerSettings | None:
        """Return the handler of the topic, or of the origin in a retry topic."""
        by_topic = self.topics.by_topic
        if record.topic in by_topic:
            return by_topic[record.topic]
        origins = [value for name, value in record.headers if name == ORIGIN_TOPIC]
        return by_topic[(origins[0] or b"").decode()] if origins else None

    def take(self, records: Iterable[FakeRecord]) -> list[WorkItem]:
        """Take records; the broker has locked them for this worker."""
        items = self.machine.new_items(records, self.now, 0.0)
        for item in items:
            expected = self._handler_of(item.record)
            assert expected is None or item.settings is expected
            deadline = item.record.lock_deadline
            self.machine.renewals.add(item, deadline=deadline, duration=LOCK)
        self.items += items
        self.do(self.machine.on_taken(items, self.now))
        return items

    def deliver(self, offset: int, **options: Any) -> WorkItem:
        options.setdefault("lock_deadline", self.now + LOCK)
        return self.take([FakeRecord(offset, **options)])[0]

    def start_calls(self) -> None:
        while (call := self.machine.next_call(self.now)) is not None:
            assert all(item.due <= self.now for item in call.items)
            assert len({item.settings for item in call.items}) == 1, "two handlers"
            self.assigned.append(call)
            self._count_turns(call.items[0].settings)

    def _count_turns(self, called: HandlerSettings) -> None:
        """Check that a handler that can be called waits for one turn of each other.

        All wait for records that run alone; these are no more than one take has.
        """
        if self.machine.scheduler.isolation.is_active:
            return
        for queue in self.machine.scheduler.queues:
            can_start = queue.is_due(self.now) and not queue.is_saturated
            if queue.settings is called or not can_start:
                self._passed_over[queue.settings] = 0
                continue
            self._passed_over[queue.settings] += 1
            others = len(self.topics.handlers) - 1
            assert self._passed_over[queue.settings] <= others, "it starves"

    def begin(self, call: Call) -> bool:
        """Begin a call; return whether its handler runs."""
        self.assigned.remove(call)
        self.do(self.machine.on_call_begins(call, self.now))
        if not call.items:
            self.machine.on_call_ended(call)
            return False
        positions = [position(item.record) for item in call.items]
        in_calls = {position(i.record) for each in self.running for i in each.items}
        assert len(set(positions)) == len(positions), "one record twice in a call"
        assert in_calls.isdisjoint(positions), "two handlers for one record"
        assert all(item.state is ItemState.RUNNING for item in call.items)
        names = {self._handler_of(item.record) for item in call.items} - {None}
        assert names <= {call.queue.settings}, "a record of another handler"
        self.running.append(call)
        return True

    def end_call(self, call: Call, errors: list[Exception | None]) -> None:
        """End a call whose handler has returned or raised."""
        self.running.remove(call)
        for item, error in zip(call.items, errors, strict=True):
            if error is None:
                self.succeeded.add(item)
        self.do(self.machine.on_results(call, errors, self.now, 0.1))
        self.machine.on_call_ended(call)

    def end_cancelled(self, call: Call) -> None:
        """End a call that was cancelled, once its handler has cleaned up."""
        self.running.remove(call)
        self.cancelled.remove(call)
        self.machine.on_call_ended(call)

    def lose(self, items: list[WorkItem], *, is_noticed: bool = True) -> None:
        """End the locks of records; the broker delivers them again, or archives."""
        for item in items:
            if item.is_done or item.record.lock_deadline < self.now:
                continue
            item.record.lock_deadline = -1.0
            self._return(item)
        if is_noticed:
            self.do(self.machine.on_locks_lost(items, ""))

    def confirm(self, copy: Copy) -> None:
        """Confirm that a copy is written."""
        self.copies.remove(copy)
        if self.machine.is_current(copy):
            self.copied.add(copy.item)
            if isinstance(copy.outcome, DeadLettered):
                self.dead_lettered.add(position(copy.item.record))
        self.do(self.machine.on_copied(copy))

    def fail_copy(self, copy: Copy, *, is_too_large: bool = False) -> None:
        self.copies.remove(copy)
        failed = self.machine.on_copy_failed(copy, self.now, is_too_large=is_too_large)
        self.do(failed)

    def end(self) -> None:
        """End the run: all handlers are cancelled, and then all copies are begun."""
        for call in [*self.assigned, *self.running]:
            self.machine.on_call_ended(call)
        self.running, self.cancelled, self.assigned = [], [], []
        self.copies = []
        self.do(self.machine.end())
        self.do(self.machine.release_held(self.machine.scheduler.held))

    # Actions.

    def do(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.log[type(action).__name__] += 1
            match action:
                case Acknowledge(item, kind):
                    self._acknowledge(item, kind)
                case Copy():
                    assert self.machine.is_current(action)
                    self.copies.append(action)
                case CancelCall(call):
                    assert call in self.running, "a call that does not run"
                    assert call not in self.cancelled, "cancelled twice"
                    assert all(item.has_outcome for item in call.items)
                    self.cancelled.append(call)
                case LocksLost(items):
                    self._on_lost(items)
                case OutcomeDecided(item, LockLost()):
                    assert item.call is not None, "no handler had it"
                case Stop():
                    self.machine.stop()
                    waiting = self.machine.scheduler.waiting
                    self.do(self.machine.on_time(waiting, self.now))
                case _:
                    pass

    def _on_lost(self, items: Iterable[WorkItem]) -> None:
        for item in items:
            assert not item.record.ends, "an acknowledged record loses no lock"
            item.record.ends.append("lost")
            if item.record.lock_deadline >= self.now:
                # The machine has inferred it from a later delivery.
                item.record.lock_deadline = -1.0

    def _acknowledge(self, item: WorkItem, kind: AcknowledgeType) -> None:
        assert item.is_done
        assert not item.record.ends, f"{item.record} has ended already"
        item.record.ends.append(kind)
        if item.record.lock_deadline < self.now:
            return  # the acknowledgement fails; the record is delivered again
        at = position(item.record)
        if kind is ACCEPT:
            assert item in self.succeeded or item in self.copied, "not processed"
        if kind is RELEASE:
            self._return(item)
        else:
            assert kind in (ACCEPT, REJECT)
            self.finished.add(at)

    def _return(self, item: WorkItem) -> None:
        record = item.record
        if record.delivery_count >= DELIVERY_LIMIT:
            self.finished.add(position(record))  # archived
        else:
            count = record.delivery_count + 1
            self.available[position(record)] = (count, record.key)

    # Checks.

    def check(self) -> None:
        held = set(self.machine.scheduler.held)
        for item in self.items:
            assert len(item.record.ends) == (item not in held), item.record
        calls = [*self.assigned, *self.running]
        assert len(calls) <= self.concurrency
        for queue in self.machine.scheduler.queues:
            limit = queue.settings.concurrency or self.concurrency
            own = [call for call in calls if call.queue is queue]
            assert len(own) == queue.calls <= limit, "the calls of a handler"
        for call in self.running:
            settled = all(item.state is not ItemState.RUNNING for item in call.items)
            assert settled == (call in self.cancelled), "cancelled in time"
        for item in held:
            if item.state is ItemState.COPYING:
                assert item in self.machine.copies, "it would be held for ever"
            if item.state is ItemState.RUNNING:
                assert any(item in call.items for call in calls)
        for item in self.machine.copies:
            assert not item.is_done or self._is_last(item), "it is delivered again"
        self._check_lanes(held)

    def _check_lanes(self, held: set[WorkItem]) -> None:
        """Check that only the first record of a lane is not blocked."""
        first: dict[tuple[HandlerSettings, bytes], WorkItem] = {}
        for item in self.items:
            if item in held and item.lane is not None:
                leader = first.setdefault((item.settings, item.lane), item)
                if leader is item:
                    assert item.state is not ItemState.BLOCKED, "blocked by no record"
                elif item.state is not ItemState.COPYING:
                    assert item.state is ItemState.BLOCKED, "out of order"

    def check_end(self) -> None:
        """After the end: no record is held, and none was archived in silence."""
        assert not self.machine.scheduler.held
        assert not self.machine.copies
        for item in self.items:
            assert len(item.record.ends) == 1
            if self._is_last(item) and item.settings.dead_letter is not None:
                allowed = item in self.succeeded or REJECT in item.record.ends
                assert allowed or item in self.copied, item.record

    def _is_last(self, item: WorkItem) -> bool:
        count: int = item.record.delivery_count
        return count >= DELIVERY_LIMIT


def retry_record(
    offset: int, due: float, now: float, *, source: str = "orders"
) -> FakeRecord:
    """Return a record of the retry topic that is due at `due`."""
    origin = Origin(
        topic=source,
        partition=0,
        offset=offset,
        group="billing",
        delivery_count=1,
        reason="failed",
        attempts=1,
    )
    headers = retry_headers(origin, round(1000 * (due - now)))
    return FakeRecord(
        offset, topic="later", headers=tuple(headers), lock_deadline=now + LOCK
    )
