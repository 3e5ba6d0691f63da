"""Promises of a worker with a dead-letter queue, on the embedded broker: logs, threads.

tests/scenarios/test_worker_promises.py has what becomes of records, on both brokers.
"""

import asyncio
import logging
import threading
from typing import Any

import anyio
import pytest

from sharecons import (
    DeadLetterQueue,
    Record,
    Reject,
    RetryPolicy,
    RetryTopic,
    ShareConsumer,
)
from sharecons.copies.dead_letter_headers import Origin, read_origin
from sharecons.errors import AuthorizationError
from sharecons.member import group_configs
from sharecons.protocol.codes import Code
from sharecons.testing import EmbeddedBroker
from sharecons.worker.retry_topics import retry_headers
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import (
    Handled,
    new_worker,
    on_asyncio,
    on_real_clock,
    origins,
    process,
    settled,
    working,
)

pytestmark = pytest.mark.anyio

DEAD = DeadLetterQueue("orders.dead")
TWICE = RetryPolicy(max_attempts=2, initial=0.05, maximum=0.05)


async def hang(record: Record[Any, Any]) -> None:
    await anyio.sleep_forever()


async def test_waits_longer_than_max_lock_time_lose_no_lock(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"a"])
    policy = RetryPolicy(max_attempts=10, initial=300.0, maximum=300.0)

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("bad")

    handled = Handled(fail)
    options = {"max_lock_time": 100.0, "retry": policy, "dead_letter": DEAD}
    worker = await process(broker, handled, 1, **options)

    (origin,) = origins(broker)
    assert 4 == len(handled.calls) == origin.delivery_count
    assert 0 == worker.stats.locks_lost
    assert origin.reason.startswith(
        "delivered for the last time: its max_lock_time ends"
    )


@pytest.mark.parametrize(
    ("bad", "attempts"), [("hangs", 2), ("hangs", 10), ("fails", 3), ("fails", 10)]
)
async def test_record_held_for_too_long_costs_no_other_record_of_its_key(
    broker: MemoryBroker, bad: str, attempts: int
) -> None:
    broker.produce("orders", [b"bad", b"a", b"b"], keys=[b"key"] * 3)

    async def handle(record: Record[Any, Any]) -> None:
        if record.value == b"bad":
            if bad == "fails":
                raise ValueError("bad")
            await anyio.sleep_forever()

    handled = Handled(handle)
    policy = RetryPolicy(max_attempts=attempts, initial=300.0, maximum=300.0)
    await process(
        broker,
        handled,
        3,
        key_order=True,
        max_lock_time=1.0,
        retry=policy,
        dead_letter=DEAD,
    )

    assert [0] == [each.offset for each in origins(broker)]
    assert {b"a", b"b"} < set(handled.calls)


async def test_slow_records_of_a_key_are_processed_within_a_short_max_lock_time(
    broker: MemoryBroker,
) -> None:
    values = [b"%d" % number for number in range(10)]
    broker.produce("orders", values, keys=[b"key"] * 10)
    handled = Handled(lambda record: anyio.sleep(0.6))

    await process(
        broker, handled, 10, key_order=True, max_lock_time=1.0, dead_letter=DEAD
    )

    assert values == handled.calls
    assert [] == origins(broker)


def limit_size(broker: EmbeddedBroker, size: int) -> None:
    """Limit the source, which fits its records, and the topic of its dead letters."""
    broker.delete_topic("orders")
    for topic in ("orders", "small"):
        broker.create_topic(topic, 1, config={"max.message.bytes": size})


async def test_reason_is_shortened_if_the_topic_cannot_take_it(
    embedded: EmbeddedBroker,
) -> None:
    limit_size(embedded, 700)
    embedded.produce("orders", [b"a" * 600])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("x" * 1000)

    small = DeadLetterQueue("small")
    policy = RetryPolicy(max_attempts=1)
    await process(embedded, fail, 1, retry=policy, dead_letter=small)

    (letter,) = embedded.records("small")
    origin = read_origin(letter.headers)
    assert origin is not None
    assert letter.value is None
    assert origin.reason.startswith("failed after 1 attempt: ValueError: xxx")
    assert 100 == len(origin.reason)


@on_asyncio
@pytest.mark.parametrize("first", ["returns", "fails"])
async def test_timer_that_cancels_the_task_of_an_ended_handler_hits_no_later_record(
    broker: MemoryBroker, first: str
) -> None:
    broker.produce("orders", [b"first", b"a", b"b"])

    async def cancel_later(record: Record[Any, Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        if record.value == b"first":
            task.get_loop().call_later(0.5, lambda: task.cancel())
            if first == "fails":
                raise Reject("bad")
            return
        await anyio.sleep(1.0)

    handled = Handled(cancel_later)
    once = RetryPolicy(max_attempts=1)
    await process(broker, handled, 3, concurrency=1, retry=once, dead_letter=DEAD)

    assert [b"first", b"a", b"b"] == handled.calls
    assert [] == origins(broker)


async def test_fatal_error_ends_a_busy_worker(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled(hang)
    worker = new_worker(broker, "orders", handled, dead_letter=DEAD, concurrency=1)

    with pytest.RaisesGroup(AuthorizationError):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await until(lambda: handled.calls == [b"a"])
            broker.faults.on("ShareGroupHeartbeat").refuse(
                Code.GROUP_AUTHORIZATION_FAILED
            )
            with anyio.fail_after(10):
                await until(lambda: handled.running == 0)

    assert "the member has failed; the worker ends" in caplog.text


async def test_failed_attempts_are_logged_with_the_line_that_raised(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"bad"])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("not an order")

    await process(broker, fail, 1, retry=TWICE, dead_letter=DEAD)

    lines = [each.getMessage() for each in caplog.records]
    first, second = (each for each in lines if each.startswith("attempt failed"))
    for line, attempt, then in (
        (first, 1, "attempt 2 in "),
        (second, 2, "dead letter"),
    ):
        assert "topic=orders partition=0 offset=0 delivery_count=1 " in line
        assert f" attempt={attempt} seconds=" in line
        assert "error='ValueError: not an order'" in line
        assert "test_worker_promises.py:" in line
        assert f"then='{then}" in line
    (last,) = (each for each in caplog.records if "dead-lettered" in each.getMessage())
    assert logging.WARNING == last.levelno
    assert last.exc_info is not None
    (origin,) = origins(broker)
    assert origin.traceback is not None
    assert 'raise ValueError("not an order")' in origin.traceback


async def test_lines_about_a_copy_name_its_origin_and_where_it_was_written(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    origin = Origin("orders", 0, 17, "billing", 1, "failed", attempts=1)
    broker.produce("orders.retry", [b"a"], headers=retry_headers(origin, 0))
    broker.produce("orders", [b"b"])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("bad")

    with caplog.at_level(logging.DEBUG, "sharecons"):
        async with working(
            broker,
            fail,
            retry=RetryPolicy(max_attempts=2, initial=9.0, maximum=9.0, jitter=0.0),
            retry_topics=[RetryTopic("orders.retry", 9.0)],
            dead_letter=DEAD,
        ) as worker:
            await until(
                lambda: (worker.stats.dead_lettered, worker.stats.waiting) == (1, 1)
            )

    lines = [each.getMessage() for each in caplog.records]
    failed = [each for each in lines if each.startswith("attempt failed")]
    (letter,) = (each for each in lines if each.startswith("record dead-lettered"))
    moved = [each for each in lines if each.startswith("record moved")]
    of_copy = [each for each in failed if "topic=orders.retry" in each]
    assert ["origin=orders-0@17" in each for each in of_copy] == [True]
    assert not any("origin=" in each for each in failed if each not in of_copy)
    assert "origin=orders-0@17" in letter
    assert "dead_letter=orders.dead-0@0" in letter
    assert "topic=orders partition=0 offset=0" in moved[0]
    assert "copy=orders.retry-0@1" in moved[0]


async def test_many_failures_of_one_kind_are_counted_in_the_log(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(200)])

    async def fail(record: Record[Any, Any]) -> None:
        raise KeyError("rare") if record.value == b"199" else ValueError("many")

    policy = RetryPolicy(max_attempts=1)
    await process(broker, fail, 200, retry=policy, dead_letter=DEAD)

    lines = [each.getMessage() for each in caplog.records]
    failed = [each for each in lines if each.startswith("attempt failed")]
    assert 110 == sum("ValueError" in each for each in failed)
    assert 1 == sum("KeyError" in each for each in failed)
    (more,) = (each for each in lines if each.startswith("more attempts failed"))
    assert "exception=ValueError at=" in more
    assert "count=89 within_seconds=60" in more
    assert 200 == sum(each.startswith("record dead-lettered") for each in lines)


@pytest.mark.slow("a thread is reported after half a second")
@on_real_clock
async def test_threads_that_hang_are_limited_counted_and_named(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(20)])
    leave = threading.Event()
    running: set[int] = set()
    most = 0

    def hang_in_thread(record: Record[Any, Any]) -> None:
        nonlocal most
        running.add(threading.get_ident())
        most = max(most, len(running))
        try:
            if not leave.is_set():
                leave.wait(30)
        finally:
            running.discard(threading.get_ident())

    options = {"concurrency": 3, "timeout": 0.05, "dead_letter": DEAD}
    async with working(broker, hang_in_thread, **options) as worker:
        await until(lambda: worker.stats.abandoned_threads == 3)
        # Attempts without a thread fail as well, sooner or later.
        await until(lambda: worker.stats.failed >= 3)
        await until(lambda: worker.stats.running == 0)
        await until(lambda: "goes on in its thread" in caplog.text)
        line = next(
            each.getMessage()
            for each in caplog.records
            if "goes on in its thread" in each.getMessage()
        )
        assert "in test_threads_that_hang_are_limited_counted_and_named" in line
        leave.set()
        await until(lambda: settled(broker, 20))
        await until(lambda: worker.stats.abandoned_threads == 0)

    assert 3 == most


async def test_renewals_that_are_switched_off_are_noticed_once(
    embedded: EmbeddedBroker,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_configs, "INTERVAL", 1.0)
    embedded.produce("orders", [b"a"])
    handled = Handled(hang)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(new_worker(embedded, "orders", handled, dead_letter=DEAD).run)
        await until(lambda: handled.calls == [b"a"])
        embedded.set_group_config(
            "billing", {"share.renew.acknowledge.enable": "false"}
        )
        await until(lambda: "locks are not renewed" in caplog.text)
        await anyio.sleep(5.0)  # virtual time
        tasks.cancel_scope.cancel()

    assert 1 == caplog.text.count("locks are not renewed")


async def test_record_that_runs_alone_is_called_once_earlier_ones_are_confirmed(
    embedded: EmbeddedBroker,
) -> None:
    """Otherwise its crash would cost records a delivery that have been processed."""
    embedded.produce("orders", [b"a", b"b", b"c"])
    starts: dict[int, int | None] = {}

    async def note_start(record: Record[Any, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        start = embedded.group("billing").partition("orders").start_offset
        starts[record.offset] = start

    async with ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=embedded.bootstrap_servers,
        network=embedded.network,
        acknowledgement="explicit",
        auto_offset_reset="earliest",
    ) as consumer:
        records = aiter(consumer)
        for count in (3, 2):  # the first record stays locked, and has one delivery less
            for record in [await anext(records) for _ in range(count)][-2:]:
                record.release()
    await process(embedded, note_start, 3)

    assert {0: 0, 1: 1, 2: 2} == starts
