"""Workers whose records wait until they can hold no more."""

from collections import Counter
from typing import Any

import anyio
import pytest

from sharecons import Record, RetryPolicy, RetryTopic
from sharecons.copies.dead_letter_headers import Origin
from sharecons.log import get_logger
from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.settings import DEFAULTS
from sharecons.worker.standstills import FullQueues
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, working

pytestmark = pytest.mark.anyio

LATER = RetryPolicy(max_attempts=2, initial=300.0, maximum=300.0, jitter=0.0)
SOON = RetryPolicy(max_attempts=2, initial=30.0, maximum=30.0, jitter=0.0)
RETRY_TOPICS = [RetryTopic("later", 300.0)]
LARGE = bytes(10_000)


async def fail_large(record: Record[Any, Any]) -> None:
    if record.value == LARGE:
        raise ValueError("bad")


@pytest.mark.slow("more records than can be held without blocked ones")
async def test_slow_key_lets_the_other_keys_of_its_partition_be_processed(
    broker: MemoryBroker,
) -> None:
    hot, others = 1100, 100
    values = [b"hot"] * hot + [b"other"] * others
    keys = [b"hot"] * hot + [b"%d" % number for number in range(others)]
    broker.produce("orders", values, keys=keys)

    async def handle(record: Record[Any, Any]) -> None:
        if record.value == b"hot":
            await anyio.sleep_forever()

    handled = Handled(handle)
    async with working(broker, handled, key_order=True, concurrency=2) as worker:
        await until(lambda: handled.calls.count(b"other") == others)
        blocked = worker.metrics()["sharecons_worker_records_blocked"]
        worker.stop_now()

    assert {(): hot - 1} == blocked
    assert Counter({b"hot": 1, b"other": others}) == Counter(handled.calls)


@pytest.mark.slow("more bytes than one fetch")
@pytest.mark.parametrize("source", ["topic", "retry topic"])
async def test_records_that_wait_leave_bytes_for_others_if_there_are_retry_topics(
    broker: MemoryBroker, source: str
) -> None:
    broker.create_topic("later")
    broker.produce("orders", [LARGE] * 100, batch=1)
    handled = Handled(fail_large)

    async with working(
        broker,
        handled,
        retry=LATER,
        retry_topics=RETRY_TOPICS,
        max_held_bytes=200_000,
        within=200.0,
    ) as worker:
        await until(lambda: len(handled.calls) == 100)
        if source == "retry topic":
            await anyio.sleep(60.0)  # virtual time: the copies are received
        broker.produce("orders", [b"small"] * 10)
        await until(lambda: handled.calls.count(b"small") == 10)
        assert () == worker.not_ready
        worker.stop_now()


async def test_worker_without_retry_topics_says_that_its_memory_is_full(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    broker.produce("orders", [LARGE] * 30, batch=1)
    handled = Handled(fail_large)

    async with working(
        broker, handled, retry=SOON, max_held_bytes=200_000, within=500.0
    ) as worker:
        await worker.assigned()
        await until(lambda: worker.not_ready, within=30.0)
        (condition,) = worker.not_ready
        full = worker.metrics()["sharecons_worker_full_handlers"]
        await until(lambda: not worker.not_ready, within=60.0)
        worker.stop_now()

    assert "full-memory" == condition.name
    assert condition.text.startswith(
        "handler Handled receives no further records for 10 s: 30 records wait for "
        "their next attempt; all have 300000 bytes of 200000; raise max_held_bytes, or "
        "pass retry_topics, in which records can wait"
    )
    assert {(): 1} == full
    assert "a handler receives no further records: the records that wait" in caplog.text
    assert "a handler receives further records again" in caplog.text


async def test_key_that_blocks_all_that_can_be_held_is_named(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [LARGE] * 30, keys=[b"hot"] * 30, batch=1)
    handled = Handled(fail_large)

    async with working(
        broker, handled, retry=LATER, key_order=True, max_held_bytes=200_000
    ) as worker:
        await worker.assigned()
        await until(lambda: worker.not_ready, within=30.0)
        (condition,) = worker.not_ready
        worker.stop_now()

    assert "29 of them behind orders-0@0" in condition.text


async def test_handler_with_all_blocked_records_that_it_can_hold_has_a_hot_key() -> (
    None
):
    queue = HandlerQueue(DEFAULTS, concurrency=2, max_bytes=1000, max_blocked=3)
    for offset in range(4):
        record = Origin("orders", 0, offset, "billing", 1, "", None)
        queue.add(WorkItem(record, 10, lane=b"hot"))
    queue.next_call(0.0, False)
    times = iter((0.0, 9.0, 11.0))
    full = FullQueues(get_logger(__name__), lambda: next(times), lambda _: "charge")

    assert {} == full.look([queue])
    assert {} == full.look([queue])
    text = (
        "handler charge receives no further records for 11 s: 3 records wait behind "
        "another one of their key, 3 of them behind orders-0@0; make its handler "
        "quicker, or use more keys"
    )
    assert {"hot-key": text} == full.look([queue])
