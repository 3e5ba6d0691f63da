"""A worker between handlers, a broker and topics for copies that all misbehave.

Each record that was taken has one end. It is accepted after success or a confirmed
copy. A record is never in two calls, and only in calls of its own handler. Handlers are
called in turn, within their limits. `SimulatedWorker` checks this at each action.
"""

from typing import Any, Final

import hypothesis
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sharecons import DeadLetter, Reject, Retry, RetryPolicy, RetryTopic
from sharecons.worker.machine.item import ItemState
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.positions import position
from sharecons.worker.retry_topics import RetryTopics
from tests.protocol.hypothesis_profile import MACHINE, search
from tests.worker.machine.simulated_worker import (
    LOCK,
    FakeRecord,
    SimulatedWorker,
    retry_record,
)

TOPICS: Final = RetryTopics([RetryTopic("later", 20.0)])
ERRORS: Final = {
    "none": None,
    "error": TimeoutError("slow"),
    "retry": Retry(after=2.0),
    "reject": Reject("old"),
    "dead": DeadLetter("bad"),
}

errors = st.sampled_from(["none", "none", "error", "retry", "reject", "dead"])
keys = st.sampled_from([None, b"a", b"b"])
sources = st.sampled_from(["orders", "orders", "refunds", "returns", "mails"])
choices = st.integers(0, 1000)


class WorkerAndBroker(RuleBasedStateMachine):
    """A worker's machine, and everything around it."""

    @initialize(
        max_records=st.sampled_from([1, 1, 3]),
        dead_letter=st.sampled_from([None, "dead"]),
        topics=st.sampled_from([RetryTopics([]), TOPICS]),
        on_deserialization_error=st.sampled_from(["dead_letter", "reject", "release"]),
        key_order=st.booleans(),
        stop_on_error=st.sampled_from([False, False, False, True]),
        window=st.sampled_from([2, 2000]),
        renews=st.booleans(),
        max_attempts=st.sampled_from([3, 6]),
        concurrency=st.sampled_from([None, None, 1, 2]),
        several=st.booleans(),
    )
    def begin(
        self,
        window: int,
        renews: bool,
        max_attempts: int,
        several: bool,
        **options: Any,
    ) -> None:
        topics = options.pop("topics")
        settings = HandlerSettings(
            retry=RetryPolicy(max_attempts=max_attempts, initial=4.0),
            retry_topics=topics,
            max_lock_time=100.0,
            max_wait=1.0,
            **options,
        )
        refunds = HandlerSettings(
            retry=RetryPolicy(max_attempts=3, initial=2.0),
            retry_topics=TOPICS,
            dead_letter="refunds.dead",
            concurrency=2,
        )
        mails = HandlerSettings(max_records=2, max_wait=2.0)
        others = {"refunds": refunds, "returns": refunds, "mails": mails}
        self.worker = SimulatedWorker(settings, others if several else {})
        self.worker.machine.window.window = window
        self.worker.machine.renewals.renews = renews
        self.next_offset = 0
        self.ended = False

    def known(self, topic: str) -> str:
        """Return the topic, or one that is consumed in this example."""
        return topic if topic in self.worker.topics.by_topic else "orders"

    def choose(self, several: Any, which: int) -> Any:
        several = list(several)
        return several[which % len(several)]

    # The broker.

    @rule(
        several=st.lists(keys, min_size=1, max_size=4),
        delivery_count=st.sampled_from([1, 1, 1, 5]),
        topic=sources,
    )
    def deliver(
        self, several: list[bytes | None], delivery_count: int, topic: str
    ) -> None:
        deadline = self.worker.now + LOCK
        offsets = range(self.next_offset, self.next_offset + len(several))
        self.next_offset += len(several)
        self.worker.take(
            FakeRecord(
                offset,
                topic=self.known(topic),
                key=key,
                delivery_count=delivery_count,
                lock_deadline=deadline,
            )
            for offset, key in zip(offsets, several, strict=True)
        )

    @precondition(lambda self: self.worker.topics.retry_topics)
    @rule(due=st.sampled_from([0.0, 5.0, 29.0, 60.0]), source=sources)
    def deliver_of_a_retry_topic(self, due: float, source: str) -> None:
        now, offset = self.worker.now, self.next_offset
        source = self.known(source)
        self.worker.take([retry_record(offset, now + due, now, source=source)])
        self.next_offset += 1

    @precondition(lambda self: self.worker.topics.retry_topics)
    @rule(key=keys)
    def deliver_of_a_retry_topic_without_headers(self, key: bytes | None) -> None:
        topics, deadline = self.worker.topics, self.worker.now + LOCK
        record = FakeRecord(
            self.next_offset, topic="later", key=key, lock_deadline=deadline
        )
        (item,) = self.worker.take([record])
        self.next_offset += 1
        names = [handler.retry_topics.names for handler in topics.handlers]
        if sum("later" in each for each in names) > 1:
            event("no handler")
            assert item.has_outcome
            assert item.call is None

    @precondition(lambda self: self.worker.available)
    @rule(which=choices, count=st.integers(1, 3))
    def deliver_again(self, which: int, count: int) -> None:
        available = self.worker.available
        chosen = [self.choose(available, which + n) for n in range(count)]
        records = []
        for at in dict.fromkeys(chosen):
            deliveries, key = available.pop(at)
            topic, _, offset = at
            records.append(
                FakeRecord(
                    offset,
                    topic=topic,
                    key=key,
                    delivery_count=deliveries,
                    lock_deadline=self.worker.now + LOCK,
                )
            )
        held = {position(each.record) for each in self.worker.machine.scheduler.held}
        if held.intersection(chosen):
            event("delivered again before the loss was noticed")
        self.worker.take(records)

    @precondition(lambda self: self.worker.machine.scheduler.held)
    @rule(which=choices, count=st.integers(1, 4), is_noticed=st.booleans())
    def lose_locks(self, which: int, count: int, is_noticed: bool) -> None:
        held = self.worker.machine.scheduler.held
        lost = [self.choose(held, which + n) for n in range(count)]
        self.worker.lose(list(dict.fromkeys(lost)), is_noticed=is_noticed)

    @rule()
    def notice_lost_locks(self) -> None:
        held = self.worker.machine.scheduler.held
        lost = [item for item in held if item.record.lock_deadline < self.worker.now]
        self.worker.do(self.worker.machine.on_locks_lost(lost, ""))

    # Handlers.

    @rule()
    def start_calls(self) -> None:
        if not self.ended:
            self.worker.start_calls()

    @precondition(lambda self: self.worker.assigned)
    @rule(which=choices, undeserialized=st.sets(st.integers(0, 2)))
    def begin_call(self, which: int, undeserialized: set[int]) -> None:
        call = self.choose(self.worker.assigned, which)
        if not self.worker.begin(call):
            event("a call without records")
            return
        failed = [
            (item, ValueError("no JSON"))
            for number, item in enumerate(call.items)
            if number in undeserialized and which % 4 == 0
        ]
        machine = self.worker.machine
        self.worker.do(machine.on_not_deserialized(call, failed, self.worker.now))
        if not call.items:
            self.worker.running.remove(call)
            machine.on_call_ended(call)

    @precondition(lambda self: self.worker.running)
    @rule(which=choices, several=st.tuples(errors, errors, errors))
    def end_call(self, which: int, several: tuple[str, ...]) -> None:
        call = self.choose(self.worker.running, which)
        if call in self.worker.cancelled:
            self.worker.end_cancelled(call)
            return
        results = [ERRORS[each] for each in several[: len(call.items)]]
        self.worker.end_call(call, results)

    @rule(turns=st.integers(1, 4), several=st.tuples(errors, errors, errors))
    def process(self, turns: int, several: tuple[str, ...]) -> None:
        """Let some calls begin and end, one after the other."""
        for turn in range(turns):
            self.start_calls()
            if self.worker.assigned:
                self.begin_call(which=1, undeserialized=set())
            if self.worker.running:
                self.end_call(which=turn, several=several)

    @precondition(lambda self: self.worker.running and not self.ended)
    @rule(which=choices, is_noticed=st.booleans())
    def deliver_again_to_a_running_handler(self, which: int, is_noticed: bool) -> None:
        """The lock of a record is lost, and the same worker receives it again."""
        call = self.choose(self.worker.running, which)
        item = self.choose(call.items, which)
        self.worker.lose([item], is_noticed=is_noticed)
        if position(item.record) in self.worker.available:
            count = list(self.worker.available).index(position(item.record))
            self.deliver_again(which=count, count=1)
            self.worker.start_calls()
            while self.worker.assigned:
                self.begin_call(which=1, undeserialized=set())

    # Time.

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 20.0]), renewed=st.booleans())
    def time_passes(self, seconds: float, renewed: bool) -> None:
        worker = self.worker
        worker.now += seconds
        for item in worker.machine.scheduler.held:
            deadline = item.record.lock_deadline
            if renewed and worker.machine.renewals.renews and deadline > 0.0:
                item.record.lock_deadline = worker.now + LOCK
        expired = [
            item
            for item in worker.machine.scheduler.held
            if 0.0 < item.record.lock_deadline < worker.now
        ]
        for item in expired:
            item.record.lock_deadline = worker.now
        worker.lose(expired)
        for item in worker.machine.scheduler.held:
            if worker.now >= item.lease_end:
                event("held too long")
                worker.do(worker.machine.on_held_too_long(item, worker.now))
        waiting = worker.machine.scheduler.waiting
        worker.do(worker.machine.on_time(waiting, worker.now))

    @precondition(lambda self: self.worker.machine.scheduler.held)
    @rule(which=choices)
    def hold_too_long(self, which: int) -> None:
        item = self.choose(self.worker.machine.scheduler.held, which)
        self.worker.do(self.worker.machine.on_held_too_long(item, self.worker.now))

    # Copies.

    @precondition(lambda self: self.worker.copies)
    @rule(which=choices)
    def confirm(self, which: int) -> None:
        self.worker.confirm(self.choose(self.worker.copies, which))

    @precondition(lambda self: self.worker.copies)
    @rule(which=choices, is_too_large=st.booleans())
    def fail_copy(self, which: int, is_too_large: bool) -> None:
        copy = self.choose(self.worker.copies, which)
        self.worker.fail_copy(copy, is_too_large=is_too_large)

    # The end.

    @precondition(lambda self: self.next_offset > 12)
    @rule()
    def stop(self) -> None:
        machine = self.worker.machine
        machine.stop()
        self.worker.do(machine.on_time(machine.scheduler.waiting, self.worker.now))
        assert not any(item.is_waiting for item in machine.scheduler.held)

    @precondition(lambda self: self.next_offset > 20)
    @rule()
    def end(self) -> None:
        self.ended = True
        self.worker.end()

    @invariant()
    def contract_holds(self) -> None:
        if hasattr(self, "worker"):
            self.worker.check()
            if self.ended:
                held = self.worker.machine.scheduler.held
                assert all(item.state is ItemState.COPYING for item in held)

    def teardown(self) -> None:
        if not hasattr(self, "worker"):
            return
        self.end()
        for copy in list(self.worker.copies):
            self.worker.confirm(copy)
        self.worker.check()
        self.worker.check_end()


# Its examples are short.
WorkerAndBroker.TestCase.settings = hypothesis.settings(
    MACHINE, max_examples=3 * MACHINE.max_examples
)
TestWorkerAndBroker = search(WorkerAndBroker.TestCase)
