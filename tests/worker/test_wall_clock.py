"""Workers whose wall clock differs from the clocks of brokers and other workers."""

import time
from typing import Any

import anyio
import pytest

from sharecons import DeadLetter, Record, Retry, RetryPolicy, RetryTopic
from sharecons.testing import EmbeddedBroker
from sharecons.worker.machine import window
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, settled, working

pytestmark = pytest.mark.anyio

DAY = 86_400.0
DELAY = 0.5
SLOW = RetryPolicy(max_attempts=3, initial=DELAY, maximum=DELAY, jitter=0.0)


class Clock:
    """A module `time` whose wall clock is set; it does not change the broker's."""

    def __init__(self, ahead: float) -> None:
        self.ahead = ahead

    def time(self) -> float:
        return time.time() + self.ahead

    def time_ns(self) -> int:
        return time.time_ns() + round(self.ahead * 1e9)


@pytest.mark.parametrize(
    ("ahead", "longest"), [(DAY, 1.5 * DELAY), (-DAY, 0.1)], ids=["ahead", "behind"]
)
async def test_delay_of_a_retry_topic_is_limited_although_clocks_differ_by_a_day(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, ahead: float, longest: float
) -> None:
    """One clock writes the due time, the other one reads it."""
    monkeypatch.setattr(window, "USABLE", 10 / window.DEFAULT_WINDOW)
    monkeypatch.setattr("sharecons.worker.copy_writer.time", Clock(ahead))
    broker.produce("orders", [b"%d" % number for number in range(100)])
    calls: list[float] = []

    async def fail_once(record: Record[Any, Any]) -> None:
        if record.value == b"50":
            calls.append(anyio.current_time())
            if len(calls) == 1:
                raise Retry(after=DELAY)

    async with working(
        broker,
        fail_once,
        retry=SLOW,
        retry_topics=[RetryTopic("orders.retry", DELAY)],
    ) as worker:
        await until(lambda: len(calls) == 2)
        assert 1 == worker.stats.moved

    assert calls[1] - calls[0] < longest + 0.1


async def test_dead_letter_is_held_while_the_clock_is_ahead_and_the_reason_is_logged(
    embedded: EmbeddedBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock(DAY)
    monkeypatch.setattr("sharecons.producer.idempotent.time", clock)
    embedded.produce("orders", [b"0"])

    async def fail(record: Record[Any, Any]) -> None:
        raise DeadLetter("planned")

    handled = Handled(fail)
    async with working(embedded, handled, dead_letter="orders.dead"):
        await until(lambda: "INVALID_TIMESTAMP" in caplog.text)
        await anyio.sleep(5.0)
        assert not settled(embedded, 1)
        clock.ahead = 0.0
        await until(lambda: settled(embedded, 1))

    assert 1 == len(embedded.records("orders.dead"))
    assert [b"0"] == handled.calls
    (line,) = [r for r in caplog.records if "copies of failed" in r.getMessage()]
    assert "INVALID_TIMESTAMP" in line.getMessage()
    assert "correct this host's clock" in line.getMessage()
