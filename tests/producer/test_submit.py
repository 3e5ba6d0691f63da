"""Records that are submitted without waiting for their outcomes, in virtual time."""

from collections.abc import AsyncIterator

import anyio
import pytest

from sharecons.errors import ClosedError, Error
from sharecons.producer.records import RecordPosition
from sharecons.records.encoder import NewRecord
from sharecons.testing import EmbeddedBroker
from tests.producer.running import producing_on
from tests.waiting import until

pytestmark = pytest.mark.anyio

VALUES = [b"%d" % number for number in range(500)]


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(listen=False) as broker:
        broker.create_topic("orders", partitions=1)
        yield broker


async def test_submitted_records_have_the_order_of_the_calls(broker) -> None:
    outcomes: list[RecordPosition | Error] = []
    broker.faults.on("Produce", times=2).cut(after=True)

    # The buffer has space for ten records, so most calls wait.
    async with producing_on(broker, max_buffered=350) as producer:
        with anyio.fail_after(20):
            for value in VALUES:
                await producer.submit("orders", NewRecord(value=value), outcomes.append)
            await until(lambda: len(outcomes) == len(VALUES))

    assert VALUES == [record.value for record in broker.records("orders")]
    assert [("orders", 0, n) for n in range(500)] == outcomes


async def test_every_submitted_record_has_one_outcome_when_the_producer_closes(
    broker,
) -> None:
    outcomes: list[RecordPosition | Error] = []
    broker.faults.on("Produce", times=None).stall()

    async with producing_on(broker) as producer:
        for value in VALUES:
            await producer.submit("orders", NewRecord(value=value), outcomes.append)
    with pytest.raises(ClosedError):
        await producer.submit("orders", NewRecord(value=b"late"), outcomes.append)

    assert [ClosedError] * 500 == [type(outcome) for outcome in outcomes]


async def test_cancelled_submit_adds_nothing(broker) -> None:
    stalled = broker.faults.on("Produce", times=None).stall()
    outcomes: list[RecordPosition | Error] = []
    async with producing_on(broker, max_buffered=1) as producer:
        await producer.submit("orders", NewRecord(value=b"first"), outcomes.append)
        with anyio.move_on_after(0.2) as scope:
            await producer.submit("orders", NewRecord(value=b"none"), outcomes.append)
        await anyio.wait_all_tasks_blocked()
        stalled.undo()
        await producer.send("orders", b"last")

    assert scope.cancelled_caught
    assert [b"first", b"last"] == [r.value for r in broker.records("orders")]
