"""Records whose locks or leases end early or late in the life of a worker."""

import functools
from collections import Counter
from typing import Any

import anyio
import pytest

from sharecons import DeadLetterQueue, Record, Retry, RetryTopic, ShareWorker
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, process, settled, working

pytestmark = pytest.mark.anyio

ROUNDS = 5
"""Workers that end with the same timing: trio runs its tasks in a random order."""


async def hang(record: Record[Any, Any]) -> None:
    await anyio.sleep_forever()


async def test_waiting_record_whose_lease_began_later_does_not_end_the_worker(
    broker: MemoryBroker,
) -> None:
    """Records of one fetch are taken one after the other, and have one lock."""
    broker.produce("orders", [b"first", b"slow", b"last"])
    attempts: Counter[Any] = Counter()

    async def handle(record: Record[Any, Any]) -> None:
        attempts[record.value] += 1
        if record.value == b"slow":
            await anyio.sleep(2.0)
        elif attempts[record.value] == 1:
            raise Retry(after=4.5)

    worker = await process(broker, handle, 3, concurrency=1, max_lock_time=5.0)

    assert worker.stats.accepted == 3


def is_waiting(worker: ShareWorker[Any, Any]) -> bool:
    return worker.stats.waiting > 0


async def test_stop_now_while_records_wait_raises_no_error(
    broker: MemoryBroker,
) -> None:
    async def retry(record: Record[Any, Any]) -> None:
        raise Retry(after=2.0)

    topics = [RetryTopic("orders.retry", 10.0)]
    for _ in range(ROUNDS):
        broker.produce("orders", [b"a"])
        async with working(broker, retry, retry_topics=topics) as worker:
            await until(functools.partial(is_waiting, worker))
            worker.stop_now()


async def test_lock_lost_on_a_last_delivery_that_comes_before_the_limit_is_read(
    embedded: EmbeddedBroker,
) -> None:
    """The limit is not Kafka's default, with which it would not be the last one."""
    embedded.set_group_config("billing", {"share.delivery.count.limit": 2})
    embedded.produce("orders", [b"a"])
    handled = Handled(hang)
    async with working(embedded, handled, shutdown_grace=0.0):
        await until(lambda: len(handled.calls) == 1)

    embedded.faults.on("DescribeConfigs", times=None).delay(0.2)
    dead = DeadLetterQueue("orders.dead")
    async with working(embedded, handled, dead_letter=dead) as worker:
        await until(lambda: len(handled.calls) == 2)
        embedded.faults.on("ShareFetch").hang_up()
        await until(lambda: worker.stats.locks_lost == 1)
        await until(lambda: worker.stats.dead_lettered == 1)

    assert 1 == len(embedded.records("orders.dead"))


def ends_slowly_once(calls: "Counter[int]") -> Any:
    """Return a handler whose first call takes 2 s to end after its cancellation."""
    running: set[int] = set()

    async def handle(record: Record[Any, Any]) -> None:
        assert record.offset not in running, "two calls at the same time"
        running.add(record.offset)
        calls[record.offset] += 1
        try:
            if calls[record.offset] == 1:
                await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(2.0 if record.delivery_count == 1 else 0.0)
            running.remove(record.offset)

    return handle


async def test_record_delivered_again_waits_for_the_end_of_its_cancelled_call(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(20)])
    calls: Counter[int] = Counter()

    handle = ends_slowly_once(calls)
    async with working(broker, handle, concurrency=50) as worker:
        await until(lambda: len(calls) == 20)
        broker.faults.on("ShareFetch").hang_up()
        await until(lambda: worker.stats.locks_lost == 20)
        await until(lambda: settled(broker, 20))

    assert worker.stats.accepted == 20
    assert worker.stats.failed == 0
