"""Where failed records wait: in place, in a retry topic, or nowhere."""

import time
from collections import Counter
from typing import Any

import anyio
import pytest

from sharecons import (
    DeadLetterQueue,
    Record,
    Retry,
    RetryPolicy,
    RetryTopic,
    ShareWorker,
)
from sharecons.copies.dead_letter_headers import read_origin
from sharecons.errors import ConfigurationError
from sharecons.net.io.event_loop import running_clock
from sharecons.testing import EmbeddedBroker
from sharecons.worker.machine import window
from sharecons.worker.retry_topics import read_retry_state
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, settled, working

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
    origin = read_origin(letter.headers)
    assert origin is not None
    assert 3 == handled.calls.count(b"50")
    assert ("orders", 50, 3) == (origin.topic, origin.offset, origin.attempts)
    assert not [name for name, _ in letter.headers if name == "sharecons.retry.due"]


async def test_without_a_retry_topic_the_record_is_released_with_one_warning(
    broker: MemoryBroker, small_window: None, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(100)])
    deliveries: list[int] = []
    calls: Counter[bytes] = Counter()

    async def fail_twice(record: Record[Any, Any]) -> None:
        calls[record.value] += 1
        if record.value in (b"50", b"51") and record.delivery_count < 3:
            deliveries.append(record.delivery_count)
            raise TimeoutError("slow")

    async with working(broker, fail_twice, retry=SLOW) as worker:
        await until(lambda: settled(broker, 100))

    assert [1, 1, 2, 2] == sorted(deliveries)
    assert {b"50": 3, b"51": 3} == {each: n for each, n in calls.items() if n > 1}
    assert (0, 4) == (worker.stats.moved, worker.stats.released)
    assert 1 == caplog.text.count("failed record released")


async def test_record_that_cannot_keep_its_lock_moves_to_the_retry_topic(
    broker: MemoryBroker,
) -> None:
    broker.set_group_config(
        "billing",
        {
            "share.record.lock.duration.ms": 1500,
            "share.renew.acknowledge.enable": "false",
        },
    )
    broker.produce("orders", [b"short", b"long"])
    calls: list[tuple[bytes, str, int]] = []

    async def fail_once(record: Record[Any, Any]) -> None:
        calls.append((record.value, record.topic, record.delivery_count))
        if len(calls) <= 2:
            raise Retry(after=2.5 if record.value == b"long" else 0.1)

    async with working(
        broker, fail_once, retry=SLOW, retry_topics=[RetryTopic("orders.retry", 2.0)]
    ) as worker:
        await until(lambda: len(calls) == 4)
        await until(lambda: worker.stats.held == 0)

    assert [(b"short", "orders", 1), (b"long", "orders.retry", 1)] == calls[2:]
    assert 1 < worker.stats.moved, "once more each time its lock would end"
    assert 0 == worker.stats.locks_lost


async def test_record_that_began_to_wait_moves_when_the_rate_rises(
    broker: MemoryBroker, small_window: None
) -> None:
    broker.produce("orders", [b"0"])
    policy = RetryPolicy(max_attempts=2, initial=30.0, maximum=30.0)

    async def wait_long(record: Record[Any, Any]) -> None:
        if record.value == b"0" and record.topic == "orders":
            raise TimeoutError("slow")

    handled = Handled(wait_long)
    async with working(
        broker,
        handled,
        retry=policy,
        retry_topics=[RetryTopic("orders.retry", 30.0)],
    ) as worker:
        await until(lambda: worker.stats.waiting == 1)
        broker.produce("orders", [b"%d" % number for number in range(1, 100)])
        await until(lambda: bool(broker.records("orders.retry")))
        await until(lambda: settled(broker, 100))
        await until(lambda: worker.stats.waiting == 1)  # in the retry topic

    assert 1 == handled.calls.count(b"0")


async def test_records_with_key_order_wait_in_place(
    broker: MemoryBroker, small_window: None
) -> None:
    broker.produce("orders", [b"%d" % n for n in range(100)], keys=[b"key"] * 100)
    handled = Handled(fail_one)

    async with working(
        broker, handled, retry=SLOW, retry_topics=RETRY_TOPICS, key_order=True
    ):
        await until(lambda: len(handled.calls) == 102)

    assert [b"50", b"50", b"50"] == handled.calls[50:53]
    assert () == broker.records("orders.retry")


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


@pytest.mark.slow("thousands of records")
async def test_undue_records_of_a_retry_topic_block_no_others(
    broker: MemoryBroker,
) -> None:
    due = b"%d" % ((time.time() + 600) * 1000)
    names = {"topic": b"orders", "partition": b"0", "offset": b"1", "group": b"billing"}
    headers = [(f"sharecons.origin.{name}", value) for name, value in names.items()]
    headers += [
        ("sharecons.origin.delivery-count", b"1"),
        ("sharecons.reason", b"slow"),
        ("sharecons.retry.due", due),
    ]
    broker.produce("orders.retry", [b"w"] * 1500, headers=tuple(headers))
    handled = Handled()

    async with working(
        broker,
        handled,
        concurrency=5,
        retry=SLOW,
        retry_topics=[RetryTopic("orders.retry", 600.0)],
    ) as worker:
        await until(lambda: worker.stats.waiting > 500)
        broker.produce("orders", [b"%d" % number for number in range(100)])
        await until(lambda: len(handled.calls) == 100)
        assert b"w" not in handled.calls


async def test_copy_that_cannot_be_written_leaves_the_record_held(
    broker: MemoryBroker, small_window: None
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(100)])
    fault = broker.faults.on("Produce", times=None).refuse("NOT_ENOUGH_REPLICAS")
    handled = Handled(fail_one)

    async with working(
        broker, handled, retry=SLOW, retry_topics=RETRY_TOPICS
    ) as worker:
        await until(lambda: fault.hits > 3)
        assert 0 == worker.stats.moved
        assert 1 == worker.stats.held
        fault.undo()
        await until(lambda: worker.stats.moved == 1)


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


def test_delay_longer_than_every_retry_topic_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"can wait 72 s.*'orders.retry' with"):
        ShareWorker(
            "orders",
            Handled(),
            group_id="billing",
            retry_topics=RETRY_TOPICS,
        )


@pytest.mark.parametrize(
    "topics",
    [
        [RetryTopic("a", 1.0), RetryTopic("a", 60.0)],
        [RetryTopic("a", 60.0), RetryTopic("b", 60.0)],
    ],
)
def test_retry_topics_must_differ(topics: list[RetryTopic]) -> None:
    with pytest.raises(ConfigurationError, match="different topics and different"):
        ShareWorker(
            "orders",
            Handled(),
            group_id="billing",
            retry_topics=topics,
        )
