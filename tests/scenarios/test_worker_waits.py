"""A thousand failed records wait for 30 s: in place, in a retry topic, or released.

On a virtual clock with the embedded broker. The CPU that this takes is measured by
`tests.bench`.
"""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import pytest

from sharecons import Record, Retry, RetryPolicy, RetryTopic, ShareWorker
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.pytest_plugin import SETTINGS
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("wall_clock"),
]

DELAY = 30.0
FAILING = 1000
STEP = 0.1
"""Seconds between two writes of the producer, or two looks at a condition."""


@pytest.fixture(params=["asyncio", pytest.param("trio", marks=pytest.mark.thorough)])
def anyio_backend(request: pytest.FixtureRequest) -> virtual_time.Backend:
    return virtual_time.backend(request.param)


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        for topic in ("jobs", "jobs.retry"):
            broker.create_topic(topic, partitions=1)
        yield broker


class Call(NamedTuple):
    """A call of the handler; `at` is the time of the event loop."""

    topic: str
    delivery_count: int
    at: float


class Jobs:
    """Jobs, some of which fail once; and the handler's calls, by a job's number."""

    def __init__(self, one_in: int) -> None:
        self.one_in = one_in
        self.written: dict[int, float] = {}
        self.calls: dict[int, list[Call]] = {}

    async def handle(self, record: Record[Any, Any]) -> None:
        number = int(record.value)
        calls = self.calls.setdefault(number, [])
        call = Call(record.topic, record.delivery_count, anyio.current_time())
        calls.append(call)
        if self.fails(number) and len(calls) == 1:
            raise Retry(after=DELAY)

    def fails(self, number: int) -> bool:
        return number % self.one_in == 0

    async def write(self, broker: EmbeddedBroker, rate: int) -> None:
        """Write jobs until FAILING of them will fail; `rate` is per second."""
        count = FAILING * self.one_in
        for first in range(0, count, round(rate * STEP)):
            numbers = range(first, min(count, first + round(rate * STEP)))
            broker.produce("jobs", [b"%d" % number for number in numbers])
            self.written.update(dict.fromkeys(numbers, anyio.current_time()))
            await anyio.sleep(STEP)

    @property
    def is_done(self) -> bool:
        """True if all jobs are handled, including all second attempts."""
        expected = len(self.written) + FAILING
        return sum(map(len, self.calls.values())) >= expected

    def first_delays(self) -> list[float]:
        """Return the seconds that each job has waited for its first attempt."""
        return [self.calls[n][0].at - at for n, at in self.written.items()]

    def retries(self) -> list[list[Call]]:
        return [calls for number, calls in self.calls.items() if self.fails(number)]

    def waits(self) -> list[float]:
        """Return the seconds between two attempts."""
        return [second.at - first.at for first, second in self.retries()]

    def deliveries(self) -> Counter[tuple[tuple[str, int], ...]]:
        """Return the topics and delivery counts of jobs that fail once."""
        return Counter(
            tuple((call.topic, call.delivery_count) for call in calls)
            for calls in self.retries()
        )


@asynccontextmanager
async def working(
    broker: EmbeddedBroker, jobs: Jobs, **options: Any
) -> AsyncIterator[ShareWorker[Any, Any]]:
    policy = RetryPolicy(initial=DELAY, maximum=DELAY, jitter=0.0)
    worker = ShareWorker(
        "jobs",
        jobs.handle,
        group_id="workers",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        network=broker.network,
        retry=policy,
        **options,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        try:
            yield worker
        finally:
            worker.stop()


async def process(
    broker: EmbeddedBroker, jobs: Jobs, rate: int, **options: Any
) -> tuple[ShareWorker[Any, Any], int]:
    """Process all jobs; return the worker, and the records waiting after the writes."""
    async with working(broker, jobs, **options) as worker:
        await until(lambda: worker.connected, within=10)
        await jobs.write(broker, rate)
        waiting = worker.stats.waiting
        await until(lambda: jobs.is_done, within=3 * DELAY, pause=STEP)
    return worker, waiting


async def test_records_that_fit_in_the_window_wait_in_place(
    broker: EmbeddedBroker,
) -> None:
    jobs = Jobs(one_in=1)
    worker, waiting = await process(
        broker, jobs, 20, concurrency=1, retry_topics=[RetryTopic("jobs.retry", DELAY)]
    )

    assert waiting == pytest.approx(20 * DELAY, rel=0.1)
    assert jobs.deliveries() == {(("jobs", 1), ("jobs", 1)): FAILING}
    # One slot is enough for all first attempts, so no waiting record uses it.
    assert max(jobs.first_delays()) < 1.0
    assert min(jobs.waits()) == pytest.approx(DELAY, abs=0.01)
    assert max(jobs.waits()) < DELAY + 1.0
    stats = worker.stats
    assert (stats.retried, stats.moved, stats.released) == (FAILING, 0, 0)
    assert () == broker.records("jobs.retry")


async def test_records_that_would_stall_the_partition_move_to_the_retry_topic(
    broker: EmbeddedBroker,
) -> None:
    jobs = Jobs(one_in=20)
    worker, _ = await process(
        broker, jobs, 2000, retry_topics=[RetryTopic("jobs.retry", DELAY)]
    )

    moved = {(("jobs", 1), ("jobs.retry", 1)): FAILING}
    assert jobs.deliveries() == moved, "no delivery is used up"
    assert max(jobs.first_delays()) < 1.0, "the partition never stalls"
    assert min(jobs.waits()) >= DELAY - 1.0
    assert max(jobs.waits()) < DELAY + 5.0
    assert (worker.stats.moved, worker.stats.released) == (FAILING, 0)
    assert FAILING == len(broker.records("jobs.retry"))
