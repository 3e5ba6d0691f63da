"""Where failed records wait: in place, in a retry topic, or nowhere."""

import time
from typing import Any

import anyio
import pytest

from sharecons import (
    DeadLetterQueue,
    Record,
    Retry,
    RetryPolicy,
    RetryTopic,
)
from sharecons.net.io.event_loop import running_clock
from sharecons.testing import EmbeddedBroker
from sharecons.worker.machine import window
from sharecons.worker.retry_topics import read_retry_state
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, origins, settled, working

pytestmark = pytest.mark.anyio


WINDOW = "share.partition.max.record.locks"
RETRY_TOPICS = [RetryTopic("orders.retry", 0.5)]
SLOW = RetryPolicy(max_attempts=3, initial=0.5, maximum=0.5, jitter=0.0)


@pytest.fixture
async def wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wall clock, with which due times are written, follow the virtual one."""
    clock, start = running_clock(), time.time()
    monkeypatch.setattr(time, "time", lambda: start + clock())


@pytest.fixture
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let failed records wait in place only within ten offsets."""
    monkeypatch.setattr(window, "USABLE", 10 / window.DEFAULT_WINDOW)


async def fail_one(record: Record[Any, Any]) -> None:
    """Fail for record 50: by then, the worker has measured the rate."""
    if record.value == b"50":
        raise Retry(after=0.5)


@pytest.mark.parametrize("values", ["bytes", "memoryview"])
async def test_record_that_would_stall_its_partition_moves_to_the_retry_topic(
    broker: MemoryBroker, small_window: None, wall_clock: None, values: str
) -> None:
    broker.produce(
        "orders",
        [b"%d" % number for number in range(100)],
        keys=[b"key"] * 100,
        headers=(("trace", b"1"), ("sharecons.origin.topic", b"forged")),
    )
    calls: list[tuple[str, float]] = []
    origins: list[tuple[str, int]] = []

    async def fail_once(record: Record[Any, Any]) -> None:
        if record.value == b"50":
            calls.append((record.topic, anyio.current_time()))
            origins.append(worker.origin(record)[:3])
            if len(calls) == 1:
                raise TimeoutError("slow")

    async with working(
        broker, fail_once, retry=SLOW, retry_topics=RETRY_TOPICS, values=values
    ) as worker:
        await until(lambda: len(calls) == 2)
        await until(lambda: worker.stats.held == 0)
        assert 1 == worker.stats.moved
        assert 100 == worker.stats.accepted

    (copy,) = broker.records("orders.retry")
    state = read_retry_state(copy.headers)
    assert state is not None
    assert (b"key", b"50") == (copy.key, copy.value)
    assert ("trace", b"1") == copy.headers[0]
    assert ("orders", 0, 50, "billing", 1, 1) == (
        state.origin.topic,
        state.origin.partition,
        state.origin.offset,
        state.origin.group,
        state.origin.delivery_count,
        state.origin.attempts,
    )
    assert "TimeoutError: slow" == state.origin.reason
    assert ["orders", "orders.retry"] == [topic for topic, _ in calls]
    assert 0.45 < calls[1][1] - calls[0][1]
    assert [("orders", 0, 50), ("orders", 0, 50)] == origins


@pytest.mark.slow("fetches for more than a virtual minute")
@pytest.mark.parametrize(("window_after", "moved"), [(2000, 0), (100, 1)])
async def test_window_that_changes_is_followed_within_a_minute(
    broker: MemoryBroker, window_after: int, moved: int
) -> None:
    """Twenty records a second follow a record that waits for 30 s: 600 in all."""

    async def fail_first(record: Record[Any, Any]) -> None:
        if record.value == b"0" and record.topic == "orders":
            raise Retry(after=30.0)

    broker.set_group_config("billing", {WINDOW: 2000})
    topics = [RetryTopic("orders.retry", 60.0)]
    async with working(
        broker, fail_first, retry_topics=topics, within=200, shutdown_grace=0.0
    ) as worker:
        await anyio.sleep(5)
        broker.set_group_config("billing", {WINDOW: window_after})
        await anyio.sleep(61)
        for number in range(0, 100, 10):
            broker.produce("orders", [b"%d" % n for n in range(number, number + 10)])
            await anyio.sleep(0.5)

        assert moved == worker.stats.moved


async def test_attempts_in_the_retry_topic_count_towards_the_maximum(
    broker: MemoryBroker, small_window: None
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(100)])
    handled = Handled(fail_one)

    async with working(
        broker,
        handled,
        retry=SLOW,
        retry_topics=RETRY_TOPICS,
        dead_letter=DeadLetterQueue("orders.dead"),
    ):
        await until(lambda: bool(broker.records("orders.dead")))

    (letter,) = broker.records("orders.dead")
    (origin,) = origins(broker)
    assert 3 == handled.calls.count(b"50")
    assert ("orders", 50, 3) == (origin.topic, origin.offset, origin.attempts)
    assert not [name for name, _ in letter.headers if name == "sharecons.retry.due"]


async def test_stopping_worker_moves_waiting_records_to_the_retry_topic(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"0"])
    policy = RetryPolicy(max_attempts=2, initial=30.0, maximum=30.0)

    async def fail(record: Record[Any, Any]) -> None:
        raise TimeoutError("slow")

    async with working(
        broker, fail, retry=policy, retry_topics=[RetryTopic("orders.retry", 30.0)]
    ) as worker:
        await until(lambda: worker.stats.waiting == 1)

    assert 1 == worker.stats.moved
    (copy,) = broker.records("orders.retry")
    state = read_retry_state(copy.headers)
    assert state is not None
    assert ("orders", 0, 1, "TimeoutError: slow", "builtins.TimeoutError") == (
        state.origin.topic,
        state.origin.offset,
        state.origin.attempts,
        state.origin.reason,
        state.origin.exception,
    )
    assert 20 < state.due / 1000 - time.time() < 40
    assert settled(broker, 1)


async def test_record_that_the_retry_topic_rejects_is_released(
    embedded: EmbeddedBroker, small_window: None
) -> None:
    # The copy has more headers than the record, which just fits.
    embedded.delete_topic("orders")
    for topic in ("orders", "small"):
        embedded.create_topic(topic, 1, config={"max.message.bytes": 1000})
    for number in range(100):
        embedded.produce("orders", [b"%d" % number + b"x" * 900])
    deliveries: list[int] = []

    async def fail_once(record: Record[Any, Any]) -> None:
        if record.offset == 50:
            deliveries.append(record.delivery_count)
            if len(deliveries) == 1:
                raise Retry(after=0.5)

    async with working(
        embedded, fail_once, retry=SLOW, retry_topics=[RetryTopic("small", 0.5)]
    ) as worker:
        await until(lambda: settled(embedded, 100))
        assert 1 == worker.stats.released

    assert [1, 2] == deliveries
