"""The log lines of a worker at INFO: its life, and an outage of an hour."""

import logging
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from sharecons import DeadLetter, DeadLetterQueue, Record, RetryPolicy
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import settled, working

pytestmark = pytest.mark.anyio

HOUR = 3600.0


class Lines(logging.Handler):
    """The lines of the client, not of the broker that this process runs."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("sharecons.testing"):
            self.texts.append(f"{record.levelname} {record.getMessage()}")

    def take(self) -> list[str]:
        texts, self.texts = self.texts, []
        return texts


@pytest.fixture
def lines() -> Iterator[Lines]:
    logger = logging.getLogger("sharecons")
    handler = Lines()
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def begins(lines: list[str]) -> list[str]:
    """Return each line without its fields."""
    return [line.partition(" group=")[0] for line in lines]


async def accept(record: Record[Any, Any]) -> None:
    await anyio.lowlevel.checkpoint()


async def test_life_of_a_worker_is_seven_lines(
    embedded: EmbeddedBroker, lines: Lines
) -> None:
    embedded.create_topic("refunds", partitions=1)
    dead = DeadLetterQueue("orders.dead")
    async with working(embedded, accept, dead_letter=dead, member_id="a") as worker:
        await worker.assigned()
        embedded.produce("orders", [b"a", b"b"])
        await until(lambda: settled(embedded, 2))
        embedded.delete_topic("orders")
        await until(lambda: not worker.assignment)
        embedded.create_topic("orders", partitions=2)
        await until(lambda: len(worker.assignment) == 2)
        running = len(lines.texts)

    life = lines.take()
    assert [
        "INFO worker starts",
        "INFO assigned",
        "INFO first record received",
        "INFO assigned",
        "INFO assigned",
        "INFO worker stops",
        "INFO worker ended",
    ] == [line for line in begins(life) if "topic" not in line]
    starts, assigned, first, *_, stops, ended = life
    assert " topics=orders dead_letter=orders.dead concurrency=10" in starts
    assert " partitions=1 added=1 removed=0" in assigned
    assert " topic=orders partition=0 offset=0 delivery_count=1 seconds=" in first
    assert " running=0 held=0 grace=30.0" in stops
    assert " accepted=2 retried=0 moved=0 rejected=0 dead_lettered=0 " in ended
    assert running <= len(life) - 2
    assert len(life) <= 10, life


async def test_failure_of_the_start_is_named_at_the_end(
    embedded: EmbeddedBroker, lines: Lines
) -> None:
    with pytest.raises(ExceptionGroup):
        async with working(embedded, accept, dead_letter="no.topic"):
            await anyio.sleep_forever()

    assert ["INFO worker starts", "INFO worker ended"] == begins(lines.texts)
    assert "failure=BrokerError" in lines.texts[-1]


@pytest.mark.slow("the requests of a worker in an hour")
async def test_broker_that_is_down_for_an_hour_is_ten_lines_and_one_when_it_is_back(
    embedded: EmbeddedBroker, lines: Lines
) -> None:
    handled = 0

    async def fail_once(record: Record[Any, Any]) -> None:
        nonlocal handled
        handled += 1
        if record.value == b"bad":
            raise ValueError("bad")
        if record.value == b"long":
            await anyio.sleep(30.0)

    policy = RetryPolicy(max_attempts=1)
    async with working(
        embedded,
        fail_once,
        within=3 * HOUR,
        retry=policy,
        dead_letter="orders.dead",
        max_wait=10.0,
    ) as worker:
        await worker.assigned()
        embedded.produce("orders", [b"long"] * 5)
        await until(lambda: handled == 5)
        lines.take()
        embedded.stop_broker(1)
        await anyio.sleep(HOUR)
        during = lines.take()
        embedded.start_broker(1)
        await until(lambda: worker.connected, within=120.0, pause=1.0)
        await until(lambda: settled(embedded, 5), within=120.0, pause=1.0)
        back = lines.take()

    assert 1 == begins(during).count("WARNING unreachable, retrying")
    assert 3 <= begins(during).count("WARNING still unreachable, retrying")
    assert len(during) <= 10, during
    # The group assigns the partition again.
    others = [line for line in begins(back) if line != "INFO assigned"]
    assert ["INFO reachable again"] == others


@pytest.mark.slow("ten virtual minutes")
async def test_dead_letters_that_cannot_be_written_are_one_problem(
    broker: MemoryBroker, lines: Lines
) -> None:
    async def fail(record: Record[Any, Any]) -> None:
        raise DeadLetter("bad")

    broker.produce("orders", [b"bad"] * 5)
    fault = broker.faults.on("Produce", times=None).refuse("INVALID_RECORD")
    async with working(
        broker, fail, within=HOUR, dead_letter="orders.dead", max_wait=10.0
    ) as worker:
        await until(lambda: worker.stats.held == 5)
        await anyio.sleep(600.0)
        during = [line for line in lines.take() if "copies" in line]
        fault.undo()
        await until(lambda: settled(broker, 5), within=120.0, pause=1.0)
        back = lines.take()

    first, *others = begins(during)
    assert first.startswith("WARNING copies of failed records not written")
    still = "WARNING copies of failed records still not written, trying again"
    assert [still] * 3 == others
    written = "INFO copies of failed records are written again"
    assert ["WARNING record dead-lettered"] * 5 + [written] == sorted(
        begins(back), reverse=True
    )
    assert "records=5" in during[-1]
