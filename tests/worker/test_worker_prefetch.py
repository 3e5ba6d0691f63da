"""Records that wait for a handler keep their locks, or are not fetched yet."""

from collections import Counter
from typing import Any

import anyio
import pytest

from sharecons import Record
from sharecons.testing import EmbeddedBroker
from tests.worker.working import Handled, settled, until, working

pytestmark = pytest.mark.anyio


class Deliveries:
    """A handler that takes `seconds`, and notes delivery counts."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.counts: Counter[int] = Counter()

    async def __call__(self, record: Record[Any, Any]) -> None:
        self.counts[record.delivery_count] += 1
        await anyio.sleep(self.seconds)


@pytest.mark.parametrize("renewals", ["true", "false"])
@pytest.mark.parametrize(("seconds", "count"), [(1.2, 20), (0.3, 100)])
async def test_slow_handlers_receive_each_record_once(
    broker: EmbeddedBroker,
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

    async with working(broker, handler, concurrency=5):
        await until(lambda: settled(broker, count))

    assert {1: count} == handler.counts
    assert (renewals == "false") == ("locks are not renewed" in caplog.text)
    assert 1 >= caplog.text.count("locks are not renewed")
    assert "acknowledgements failed" not in caplog.text


async def test_records_fetched_ahead_keep_their_locks_when_handlers_hang(
    broker: EmbeddedBroker,
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


async def test_window_of_the_group_is_read(broker: EmbeddedBroker) -> None:
    broker.set_group_config("billing", {"share.partition.max.record.locks": 300})

    async with working(broker, Handled()) as worker:
        await until(
            lambda: worker._runner is not None and worker._runner._window.window == 300
        )
