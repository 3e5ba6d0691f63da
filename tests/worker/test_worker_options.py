"""Batches, outcomes, deserializers and errors of a worker on the embedded broker."""

from collections import Counter
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from sharecons import (
    Attempt,
    BatchHandler,
    CallNext,
    DeadLetterQueue,
    DeserializationError,
    OutcomeEvent,
    Record,
    Reject,
    Retry,
    ShareWorker,
)
from sharecons.copies.dead_letter_headers import read_origin
from sharecons.errors import ConsumerStateError
from sharecons.testing import EmbeddedBroker
from sharecons.worker.handlers import HandlerBatch
from sharecons.worker.outcomes import (
    Accepted,
    LockLost,
    Rejected,
    Released,
    RetryAfter,
)
from sharecons.worker.slots import CallSlots
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, process, settled, working

pytestmark = pytest.mark.anyio


async def test_only_the_failed_records_of_a_batch_are_retried(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(20)])
    calls: Counter[bytes] = Counter()

    async def write(batch: HandlerBatch[Any, Any]) -> None:
        for record in batch:
            calls[record.value] += 1
            if record.value == b"7" and calls[b"7"] < 3:
                batch.fail(record, ValueError("bad"))

    handler = BatchHandler(write, max_records=20, max_wait=0.05)
    await process(broker, handler, 20)

    assert 3 == calls.pop(b"7")
    assert {1} == {*calls.values()}


Event = OutcomeEvent[Any, Any]


async def test_outcome_of_each_attempt_is_reported(broker: MemoryBroker) -> None:
    broker.produce("orders", [b"a"])
    events: list[Event] = []
    bad = ValueError("bad")
    errors: list[Exception] = [bad, Reject("old")]

    async def fail_twice(record: Record[Any, Any]) -> None:
        await anyio.sleep(0.25)
        raise errors.pop(0)

    worker = await process(broker, fail_twice, 1, on_outcome=events.append)

    assert [
        (b"a", 1, RetryAfter, bad, 0.25),
        (b"a", 2, Rejected, None, 0.25),
    ] == [
        (
            event.record.value,
            event.attempt,
            type(event.outcome),
            event.error,
            round(event.seconds or 0.0, 2),
        )
        for event in events
    ]
    assert (1, 1, 1) == (
        worker.stats.failed,
        worker.stats.retried,
        worker.stats.rejected,
    )


async def test_exception_of_on_outcome_is_logged_up_to_ten_times_a_minute(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(15)])

    def fail(event: Event) -> None:
        raise LookupError("no metrics")

    worker = await process(broker, Handled(), 15, on_outcome=fail)

    assert 15 == worker.stats.accepted
    lines = [each for each in caplog.messages if "on_outcome failed" in each]
    assert 11 == len(lines)
    assert "on_outcome failed more often" in lines[-1]
    assert "no metrics" in caplog.text


async def test_awaitable_of_on_outcome_is_logged(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"a"])

    async def report() -> None:
        raise AssertionError("it is not awaited")

    await process(broker, Handled(), 1, on_outcome=lambda event: report())

    assert "on_outcome returned an awaitable" in caplog.text


async def test_lost_lock_is_reported_and_cancels_middleware(
    broker: MemoryBroker,
) -> None:
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 1000})
    broker.faults.on("ShareAcknowledge").cut()  # the first renewal
    broker.produce("orders", [b"a"])
    events: list[Event] = []
    seen: list[object] = []

    async def trace(attempt: Attempt[Any, Any], call_next: CallNext) -> None:
        try:
            await call_next()
        finally:
            seen.append(attempt.outcome)

    async def hang_once(record: Record[Any, Any]) -> None:
        if record.delivery_count == 1:
            await anyio.sleep_forever()

    await process(broker, hang_once, 1, middleware=[trace], on_outcome=events.append)

    assert [LockLost(), Accepted()] == [event.outcome for event in events] == seen
    assert None is events[0].seconds is events[0].error


async def test_handlers_receive_deserialized_records(broker: MemoryBroker) -> None:
    broker.produce("orders", [b"1", b"2"], keys=[b"k", None])
    received: list[tuple[Any, Any]] = []

    async def handle(record: Record[str, int]) -> None:
        received.append((record.key, record.value))

    await process(
        broker,
        handle,
        2,
        value_deserializer=int,
        key_deserializer=bytes.decode,
        concurrency=1,
    )

    assert [("k", 1), (None, 2)] == received


@pytest.mark.parametrize(
    ("options", "letters"),
    [
        ({}, 0),
        ({"dead_letter": DeadLetterQueue("orders.dead")}, 1),
        (
            {
                "dead_letter": DeadLetterQueue("orders.dead"),
                "on_deserialization_error": "reject",
            },
            0,
        ),
    ],
)
async def test_undeserializable_record_is_not_handled_but_others_are(
    broker: MemoryBroker, options: dict[str, Any], letters: int
) -> None:
    broker.produce("orders", [b"1", b"not a number", b"3"], keys=[b"k"] * 3)
    handled = Handled()
    events: list[Event] = []

    await process(
        broker, handled, 3, value_deserializer=int, on_outcome=events.append, **options
    )

    assert [1, 3] == sorted(handled.calls)
    assert [(b"not a number", None, DeserializationError)] == [
        (event.record.value, event.seconds, type(event.error))
        for event in events
        if event.error is not None
    ]
    written = broker.records("orders.dead")
    assert letters == len(written)
    for letter in written:
        origin = read_origin(letter.headers)
        assert origin is not None
        assert (b"k", b"not a number") == (letter.key, letter.value)
        assert "invalid literal for int()" in origin.reason


async def test_dead_letter_of_a_deserialized_record_has_its_bytes(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"1"], keys=[b"key"])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("bad")

    await process(
        broker,
        fail,
        1,
        value_deserializer=int,
        key_deserializer=bytes.decode,
        dead_letter=DeadLetterQueue("orders.dead"),
    )

    (letter,) = broker.records("orders.dead")
    assert (b"key", b"1") == (letter.key, letter.value)


async def test_unhashable_deserialized_keys_are_processed_in_order(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"%d" % n for n in range(20)], keys=[b"a", b"b"] * 10)
    handled = Handled(lambda record: anyio.sleep(0.001))

    await process(
        broker, handled, 20, key_deserializer=lambda key: [key], key_order=True
    )

    evens = [value for value in handled.calls if int(value) % 2 == 0]
    assert sorted(evens, key=int) == evens


async def test_damaged_batch_does_not_end_the_worker(
    embedded: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    embedded.produce("orders", [b"damaged"])
    embedded.produce("orders", [b"sound"])
    embedded.corrupt_batch("orders", 0, 0)
    handled = Handled()

    async with working(embedded, handled):
        await until(lambda: handled.calls == [b"sound"])

    assert "records not received" in caplog.text


@pytest.mark.parametrize("raises", [True, False])
async def test_stop_cancels_middleware_whatever_it_raises(
    broker: MemoryBroker, raises: bool
) -> None:
    broker.produce("orders", [b"a"])
    events: list[Event] = []
    handled = Handled(lambda record: anyio.sleep_forever())

    async def clean_up(attempt: Attempt[Any, Any], call_next: CallNext) -> None:
        try:
            await call_next()
        except BaseException:
            if raises:
                raise Reject("hidden") from None

    async with working(
        broker, handled, middleware=[clean_up], on_outcome=events.append
    ) as worker:
        await until(lambda: handled.running == 1)
        worker.stop_now()

    assert [Released] == [type(event.outcome) for event in events]
    assert not settled(broker, 1)


async def test_context_variable_set_by_a_handler_does_not_reach_other_handlers(
    broker: MemoryBroker,
) -> None:
    user: ContextVar[bytes] = ContextVar("user")
    received: list[bytes | None] = []

    async def handle(record: Record[Any, Any]) -> None:
        received.append(user.get(None))
        user.set(record.value)
        await anyio.sleep(0.001)
        assert record.value == user.get()

    broker.produce("orders", [b"%d" % number for number in range(9)])
    async with working(broker, handle, concurrency=2) as worker:
        await until(lambda: settled(broker, 9))
        assert 9 == worker.stats.accepted

    assert [None] * 9 == received


async def test_second_run_of_a_worker_is_an_error(broker: MemoryBroker) -> None:
    async with working(broker, Handled()) as worker:
        await until(lambda: worker.connected)

    with pytest.raises(ConsumerStateError, match="create another ShareWorker"):
        await worker.run()


def test_stats_of_a_new_worker_are_zero() -> None:
    worker = ShareWorker("orders", Handled(), group_id="billing")

    assert {0} == {*worker.stats}


@pytest.mark.parametrize("batches", [True, False])
async def test_busy_handlers_leave_the_event_loop_idle(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, batches: bool
) -> None:
    """While all handlers run, due batches and retries do not wake the worker."""
    starts = 0
    start_calls = CallSlots.start_calls

    def count_starts(self: CallSlots, tasks: Any) -> None:
        nonlocal starts
        starts += 1
        assert starts < 60, "the worker runs without waiting"
        start_calls(self, tasks)

    monkeypatch.setattr(CallSlots, "start_calls", count_starts)
    calls: Counter[bytes] = Counter()

    async def handle(record: Record[Any, Any]) -> None:
        calls[record.value] += 1
        if calls[record.value] == 1:
            # The first retry runs while the others become due, one after the other.
            raise Retry(after=0.3 + 0.01 * record.offset)
        await anyio.sleep(0.5)

    async def handle_batch(batch: HandlerBatch[Any, Any]) -> None:
        await anyio.sleep(1.0)

    handler: Any = handle
    if batches:
        handler = BatchHandler(handle_batch, max_records=3, max_wait=0.1)
    broker.produce("orders", [b"%d" % number for number in range(4)])
    await process(broker, handler, 4, concurrency=1)

    assert starts > 0
