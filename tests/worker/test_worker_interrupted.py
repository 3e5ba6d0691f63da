"""Records that wait for a retry while the worker ends, or while their lease ends."""

from collections import Counter
from typing import Any

import anyio
import pytest

from sharecons import Record, Retry, RetryTopic
from sharecons.testing import EmbeddedBroker
from sharecons.testing.virtual_time import Backend
from tests.waiting import until
from tests.worker.working import settled, working

pytestmark = pytest.mark.anyio

ROUNDS = 5
"""Workers that end with the same timing: trio runs its tasks in a random order."""


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


async def test_waiting_record_whose_lease_began_later_does_not_end_the_worker(
    broker: EmbeddedBroker,
) -> None:
    """Records of one fetch are taken one after the other, and have one lock."""
    broker.produce("orders", [b"first", b"slow", b"last"])
    attempts: Counter[bytes] = Counter()

    async def handle(record: Record[Any, Any]) -> None:
        attempts[record.value] += 1
        if record.value == b"slow":
            await anyio.sleep(2.0)
        elif attempts[record.value] == 1:
            raise Retry(after=4.5)

    async with working(broker, handle, concurrency=1, max_lease=5.0) as worker:
        await until(lambda: settled(broker, 3))

    assert worker.stats.accepted == 3


async def test_stop_now_while_records_wait_raises_no_error(
    broker: EmbeddedBroker,
) -> None:
    async def retry(record: Record[Any, Any]) -> None:
        raise Retry(after=2.0)

    options = {"retry_topics": [RetryTopic("orders.retry", 10.0)]}
    for _ in range(ROUNDS):
        broker.produce("orders", [b"a"])
        async with working(broker, retry, **options) as worker:
            await until(lambda worker=worker: worker.stats.waiting)
            worker.stop_now()
