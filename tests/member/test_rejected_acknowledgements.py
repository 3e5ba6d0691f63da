"""The state of consumers whose leaders reject acknowledgements or all partitions."""

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker
from tests.net.embedded import consuming, running

pytestmark = pytest.mark.anyio

REFUSED = "acknowledgements rejected"
UNFETCHED = "partitions cannot be fetched"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[str]]:
    caplog.set_level(logging.INFO, "sharecons")
    return lambda text: [
        f"{each.levelname} {each.getMessage()}"
        for each in caplog.records
        if text in each.getMessage()
    ]


async def consume(consumer: ShareConsumer[Any, Any], seconds: float) -> None:
    """Accept each record alone, for some time."""
    with anyio.move_on_after(seconds):
        while True:
            for record in await consumer.poll(timeout=1.0, max_records=1):
                record.accept()
            await anyio.sleep(0.5)


def refuse_requests(broker: EmbeddedBroker, code: str) -> Any:
    return broker.faults.on("ShareAcknowledge", times=None).refuse(code)


def refuse_partitions(broker: EmbeddedBroker, code: str) -> Any:
    return broker.faults.on("ShareAcknowledge", times=None).refuse_partitions(code)


@pytest.mark.slow("100 s of records in virtual time")
@pytest.mark.parametrize(
    ("refuse", "code"),
    [
        (refuse_requests, "UNKNOWN_SERVER_ERROR"),
        (refuse_requests, "COORDINATOR_NOT_AVAILABLE"),
        (refuse_requests, "KAFKA_STORAGE_ERROR"),
        # Other errors of partitions are repeated, with the next fetch.
        (refuse_partitions, "UNKNOWN_SERVER_ERROR"),
    ],
)
async def test_acknowledgements_that_stay_rejected_are_a_problem_until_they_are_not(
    refuse: Callable[[EmbeddedBroker, str], Any],
    code: str,
    lines: Callable[[str], list[str]],
) -> None:
    async with running(200) as broker, consuming(broker) as consumer:
        await consume(consumer, 3.0)
        with refuse(broker, code):
            await consume(consumer, 8.0)
            (problem,) = consumer.problems
            (line,) = lines(REFUSED)
            assert not consumer.connected
            await consume(consumer, 60.0)
            assert 1 == len(lines(REFUSED)) == len(lines("still rejected"))
        await consume(consumer, 65.0)

        assert consumer.connected
        assert () == consumer.problems
    assert line.startswith(f"WARNING {REFUSED}")
    assert "partitions=orders-0" in line
    assert f"reason={code}" in line
    assert f"{REFUSED} (partitions orders-0): {code}" in problem
    assert 1 == len(lines("acknowledgements accepted again"))
    (first,) = lines("acknowledgements failed")
    (later,) = lines("acknowledgements still fail")
    assert f"error={code}" in first
    assert records_of(later) > 50 * records_of(first)
    (end,) = lines("no acknowledgements fail any more")
    assert records_of(end) >= records_of(later)


def records_of(line: str) -> int:
    return int(re.search(r"records=(\d+)", line)[1])


async def test_late_acknowledgements_are_no_problem_of_the_broker() -> None:
    async with running(200) as broker, consuming(broker) as consumer:
        with refuse_partitions(broker, "INVALID_RECORD_STATE"):
            await consume(consumer, 8.0)
            assert consumer.connected
            assert () == consumer.problems


async def test_consumer_whose_partitions_are_all_unknown_is_not_connected(
    lines: Callable[[str], list[str]],
) -> None:
    code = "UNKNOWN_TOPIC_OR_PARTITION"
    async with running(200) as broker, consuming(broker) as consumer:
        await consume(consumer, 3.0)
        fetches = broker.faults.on("ShareFetch", times=None)
        with fetches.refuse_partitions(code):
            await consume(consumer, 8.0)
            assert not consumer.connected
            (problem,) = consumer.problems
        await consume(consumer, 30.0)
        assert consumer.connected

    assert f"{UNFETCHED}, retrying (partitions orders-0): {code}" in problem
    assert 1 == len(lines(UNFETCHED))
    assert [] == lines("metadata is stale")


def test_consumer_whose_event_loop_has_ended_has_failed() -> None:
    async def leave_open() -> ShareConsumer[Any, Any]:
        consumer: ShareConsumer[Any, Any] = ShareConsumer(
            "orders", group_id="billing", bootstrap_servers=broker.bootstrap_servers
        )
        await consumer.start()
        while not consumer.connected:
            await asyncio.sleep(0.01)  # real time: until a heartbeat is accepted
        return consumer

    with EmbeddedBroker(topics={"orders": 1}) as broker:
        consumer = asyncio.run(leave_open())

    assert not consumer.connected
    assert () == consumer.problems
    assert "<ShareConsumer failed, group 'billing', topics: orders>" == repr(consumer)
