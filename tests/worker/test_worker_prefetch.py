"""Records that wait for a handler keep their locks, or are not fetched yet."""

from collections import Counter
from typing import Any

import anyio
import pytest

from sharecons import Record
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import process, settled, working

pytestmark = pytest.mark.anyio


class Deliveries:
    """A handler that takes `seconds`, and counts deliveries by delivery count."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.counts: Counter[int] = Counter()

    async def __call__(self, record: Record[Any, Any]) -> None:
        self.counts[record.delivery_count] += 1
        await anyio.sleep(self.seconds)


@pytest.mark.parametrize(("seconds", "is_prefetched"), [(0.01, True), (1.0, False)])
async def test_records_are_prefetched_while_handlers_are_fast(
    broker: MemoryBroker, seconds: float, is_prefetched: bool
) -> None:
    """With a lock of 2 s, handlers that take up to 0.5 s are fast."""
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 2000})
    broker.produce("orders", [b"record"] * 8, batch=1)
    acquired: list[int] = []

    async def handle(record: Record[Any, Any]) -> None:
        acquired.append(len(broker.acquired("orders")))
        await anyio.sleep(seconds)

    await process(broker, handle, 8, concurrency=1)

    assert 1 == acquired[0], "no handler has ended"
    assert is_prefetched == (max(acquired) > 2)


@pytest.mark.slow("many records on a virtual clock")
@pytest.mark.parametrize("renewals", ["true", "false"])
@pytest.mark.parametrize(("seconds", "count"), [(1.2, 20), (0.3, 100)])
async def test_slow_handlers_receive_each_record_once(
    broker: MemoryBroker,
    caplog: pytest.LogCaptureFixture,
    renewals: str,
    seconds: float,
    count: int,
) -> None:
    """A lock of 2 s, one batch of records, five handlers at a time."""
    broker.set_group_config(
        "billing",
        {
            "share.record.lock.duration.ms": 2000,
            "share.renew.acknowledge.enable": renewals,
        },
    )
    broker.produce("orders", [b"%d" % number for number in range(count)])
    handler = Deliveries(seconds)

    await process(broker, handler, count, concurrency=5)

    assert {1: count} == handler.counts
    assert (renewals == "false") == ("locks are not renewed" in caplog.text)
    assert 1 >= caplog.text.count("locks are not renewed")
    assert "acknowledgements failed" not in caplog.text


@pytest.mark.slow("thousands of records")
async def test_records_fetched_ahead_keep_their_locks_when_handlers_hang(
    broker: MemoryBroker,
) -> None:
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 1500})
    broker.produce("orders", [b"%d" % number for number in range(2000)])
    hang = anyio.Event()
    counts: Counter[int] = Counter()

    async def handle(record: Record[Any, Any]) -> None:
        counts[record.delivery_count] += 1
        if record.offset >= 500:
            await hang.wait()
        await anyio.sleep(0.001)

    async with working(broker, handle, concurrency=5) as worker:
        await until(lambda: counts.total() >= 505)
        await anyio.sleep(4.0)
        assert 0 == worker.stats.locks_lost
        hang.set()
        await until(lambda: settled(broker, 2000))

    assert {1: 2000} == counts
