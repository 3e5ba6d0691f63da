"""A worker on the embedded broker: handlers, locks, dead letters, stopping."""

import threading
import time
from collections import Counter
from typing import Any

import anyio
import pytest

from sharecons import (
    DeadLetter,
    DeadLetterQueue,
    Record,
    RecordStateError,
    Reject,
    Retry,
    ShareGroupAdmin,
)
from sharecons.copies.dead_letter_headers import read_origin
from sharecons.dead_letters import DeadLetters, SourceStatus
from tests.waiting import until
from tests.worker.working import AnyBroker, Handled, on_real_clock, settled, working

pytestmark = pytest.mark.anyio

BROKERS = ("embedded", "memory")


async def test_records_are_handled_and_accepted(broker: AnyBroker) -> None:
    broker.produce("orders", [b"%d" % number for number in range(200)])
    handled = Handled()

    async with working(broker, handled):
        await until(lambda: len(handled.calls) == 200)

    assert Counter(b"%d" % number for number in range(200)) == Counter(handled.calls)
    await broker.wait_until_settled("billing")


async def test_handlers_run_concurrently_up_to_the_limit(broker) -> None:
    broker.produce("orders", [b"%d" % number for number in range(60)])
    handled = Handled(lambda record: anyio.sleep(0.5))

    async with working(broker, handled, concurrency=20):
        await until(lambda: len(handled.calls) == 60)

    assert 15 <= handled.max_running <= 20


@on_real_clock
async def test_plain_function_runs_in_threads(broker: AnyBroker) -> None:
    broker.produce("orders", [b"%d" % number for number in range(20)])
    threads: set[int] = set()
    running: list[int] = []
    max_running = 0

    def handle(record: Record[Any, Any]) -> None:
        nonlocal max_running
        threads.add(threading.get_ident())
        running.append(record.offset)
        max_running = max(max_running, len(running))
        time.sleep(0.02)  # real time: a handler in a thread
        running.remove(record.offset)

    async with working(broker, handle, concurrency=10):
        await until(lambda: settled(broker, 20))

    assert threading.get_ident() not in threads
    assert 1 < max_running <= 10


async def test_failed_record_is_tried_again_without_another_delivery(broker) -> None:
    broker.produce("orders", [b"a"])
    deliveries: list[int] = []

    async def fail_twice(record: Record[Any, Any]) -> None:
        deliveries.append(record.delivery_count)
        if len(deliveries) < 3:
            raise ValueError("not yet")

    async with working(broker, Handled(fail_twice)):
        await until(lambda: len(deliveries) == 3)

    assert [1, 1, 1] == deliveries
    await broker.wait_until_settled("billing")


async def test_slow_retry_blocks_no_other_record(broker) -> None:
    broker.produce("orders", [b"slow", *(b"%d" % number for number in range(20))])

    async def fail_slow(record: Record[Any, Any]) -> None:
        if record.value == b"slow":
            raise Retry(after=20.0)

    handled = Handled(fail_slow)
    async with working(broker, handled, concurrency=1):
        await until(lambda: len(handled.calls) == 21)
        assert 1 == handled.calls.count(b"slow")


@pytest.mark.parametrize("values", ["bytes", "memoryview"])
async def test_record_that_always_fails_is_dead_lettered(broker, values) -> None:
    broker.produce("orders", [b"bad"], keys=[b"k"], headers=(("trace", b"1"),))

    async def fail(record: Record[Any, Any]) -> None:
        raise TimeoutError("slow")

    handled = Handled(fail)
    queue = DeadLetterQueue("orders.dead")
    async with working(broker, handled, dead_letter=queue, values=values):
        await until(lambda: bool(broker.records("orders.dead")))

    (letter,) = broker.records("orders.dead")
    origin = read_origin(letter.headers)
    assert 3 == len(handled.calls)
    assert (b"k", b"bad") == (letter.key, letter.value)
    assert ("trace", b"1") == letter.headers[0]
    assert origin is not None
    assert ("orders", 0, 0, "billing", 1, 3) == (
        origin.topic,
        origin.partition,
        origin.offset,
        origin.group,
        origin.delivery_count,
        origin.attempts,
    )
    assert "failed after 3 attempts: TimeoutError: slow" == origin.reason
    assert "builtins.TimeoutError" == origin.exception
    await broker.wait_until_settled("billing")


async def test_dead_letter_that_cannot_be_written_is_not_accepted(broker) -> None:
    broker.produce("orders", [b"bad"])
    fault = broker.faults.on("Produce", times=None).refuse("NOT_ENOUGH_REPLICAS")

    async def give_up(record: Record[Any, Any]) -> None:
        raise DeadLetter("no customer")

    async with working(broker, give_up, dead_letter=DeadLetterQueue("orders.dead")):
        await until(lambda: fault.hits > 3)
        assert not settled(broker, 1)
        fault.undo()
        await until(lambda: settled(broker, 1))

    assert 1 == len(broker.records("orders.dead"))


async def test_dead_letter_that_is_too_large_is_a_reference(embedded) -> None:
    # The dead letter has more headers than the record, which just fits.
    embedded.delete_topic("orders")
    for topic in ("orders", "small.dead"):
        embedded.create_topic(topic, 1, config={"max.message.bytes": 1000})
    value = b"x" * 900
    embedded.produce("orders", [value], keys=[b"k"], headers=(("trace", b"1"),))

    async def give_up(record: Record[Any, Any]) -> None:
        raise DeadLetter("no customer")

    async with working(embedded, give_up, dead_letter=DeadLetterQueue("small.dead")):
        await until(lambda: settled(embedded, 1))

    (letter,) = embedded.records("small.dead")
    assert (None, None) == (letter.key, letter.value)
    assert ("sharecons.reference", b"too large") == letter.headers[-1]
    async with ShareGroupAdmin(
        bootstrap_servers=embedded.bootstrap_servers, network=embedded.network
    ) as admin:
        letters = DeadLetters.from_admin(admin, "small.dead")
        (found,) = [each async for each in letters.read()]
    assert (SourceStatus.FETCHED, b"k", value, (("trace", b"1"),)) == (
        found.status,
        found.key,
        found.value,
        found.headers,
    )


async def test_record_that_the_handler_rejects_is_settled_and_logged(
    broker, caplog
) -> None:
    broker.produce("orders", [b"a", b"b"])

    async def reject_first(record: Record[Any, Any]) -> None:
        if record.offset == 0:
            raise Reject("no customer")

    async with working(broker, reject_first):
        await until(lambda: settled(broker, 2))

    assert "record rejected" in caplog.text
    assert "no customer" in caplog.text


@pytest.mark.parametrize("method", ["accept", "release", "reject"])
async def test_acknowledgement_by_a_handler_is_an_error_and_changes_nothing(
    broker: AnyBroker, method: str
) -> None:
    broker.produce("orders", [b"a"])
    errors: list[str] = []

    async def acknowledge(record: Record[Any, Any]) -> None:
        record.renew()  # allowed: it decides nothing
        with pytest.raises(RecordStateError) as caught:
            getattr(record, method)()
        errors.append(str(caught.value))
        await anyio.sleep(1)  # an acknowledgement would be sent meanwhile

    async with working(broker, acknowledge):
        await until(lambda: settled(broker, 1))

    (error,) = errors
    assert error.startswith(f"cannot {method} orders-0@0: it belongs to a worker")
    assert "raise Retry(after=...), Reject or DeadLetter" in error


@on_real_clock
async def test_acknowledgement_in_a_thread_names_the_worker(
    broker: AnyBroker,
) -> None:
    broker.produce("orders", [b"a"])
    errors: list[str] = []

    def release(record: Record[Any, Any]) -> None:
        with pytest.raises(RecordStateError) as caught:
            record.release(after=5.0)
        errors.append(str(caught.value))

    async with working(broker, release):
        await until(lambda: settled(broker, 1))

    assert ["cannot release orders-0@0: it belongs to a worker"] == [
        error.partition(",")[0] for error in errors
    ]


async def test_keys_are_processed_in_order(broker) -> None:
    keys = [b"a", b"b", b"a", b"b", b"a"] * 6
    broker.produce("orders", [b"%d" % n for n in range(30)], keys=keys)
    running: Counter[bytes] = Counter()
    done: list[tuple[bytes, int]] = []

    async def handle(record: Record[Any, Any]) -> None:
        running[record.key] += 1
        assert 1 == running[record.key]
        await anyio.sleep(0.01)
        running[record.key] -= 1
        done.append((record.key, record.offset))

    async with working(broker, handle, concurrency=10, key_order=True):
        await until(lambda: len(done) == 30)

    for key in (b"a", b"b"):
        offsets = [offset for each, offset in done if each == key]
        assert sorted(offsets) == offsets


async def test_lock_is_renewed_while_the_handler_runs(broker) -> None:
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 4000})
    broker.produce("orders", [b"long"])
    deliveries: list[int] = []

    async def run_long(record: Record[Any, Any]) -> None:
        deliveries.append(record.delivery_count)
        await anyio.sleep(6.0)

    async with working(broker, run_long):
        await until(lambda: settled(broker, 1))

    assert [1] == deliveries


async def test_handler_whose_lock_is_lost_is_cancelled(broker) -> None:
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 1000})
    broker.produce("orders", [b"a"])
    ends: list[str] = []

    async def hang(record: Record[Any, Any]) -> None:
        if record.delivery_count > 1:
            return
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            ends.append("cancelled")
            raise

    async with working(broker, hang, max_lock_time=0.5):
        await until(lambda: settled(broker, 1))

    assert ["cancelled"] == ends


async def test_handler_is_cancelled_before_its_record_is_handled_again(broker) -> None:
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 1000})
    broker.produce("orders", [b"%d" % number for number in range(20)])
    renewal = broker.faults.on("ShareAcknowledge").cut()
    running: set[int] = set()
    deliveries: Counter[int] = Counter()

    async def run_long(record: Record[Any, Any]) -> None:
        assert record.offset not in running
        running.add(record.offset)
        try:
            await anyio.sleep(1.2 if record.delivery_count == 1 else 0.0)
            deliveries[record.delivery_count] += 1
        finally:
            running.remove(record.offset)

    async with working(broker, run_long, concurrency=20) as worker:
        await until(lambda: settled(broker, 20))
        assert 1 == renewal.hits
        assert 0 == worker.stats.failed
        assert worker.stats.locks_lost == deliveries[2] > 0


async def test_stopped_worker_finishes_running_handlers_and_releases_other_records(
    broker,
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(10)])
    handled = Handled(lambda record: anyio.sleep(0.3))

    async with working(broker, handled, concurrency=2):
        await until(lambda: len(handled.calls) == 2)

    accepted = len(handled.calls)
    await until(lambda: settled(broker, accepted))
    assert handled.running == 0


async def test_handler_that_exceeds_the_grace_is_cancelled_and_its_record_released(
    broker,
) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled(lambda record: anyio.sleep(60))

    async with working(broker, handled, shutdown_grace=0.2):
        await until(lambda: handled.running == 1)

    assert not settled(broker, 1)
    assert handled.running == 0


async def test_fatal_error_of_the_consumer_ends_the_worker(broker) -> None:
    broker.faults.on("ShareGroupHeartbeat", times=None).refuse(
        "GROUP_AUTHORIZATION_FAILED"
    )

    with pytest.raises(BaseExceptionGroup) as caught:
        async with working(broker, Handled()):
            await anyio.sleep(5)

    assert "GROUP_AUTHORIZATION_FAILED" in str(caught.value.exceptions[0])
