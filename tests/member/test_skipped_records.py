"""The number of records that a new group skips because it starts at the end."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons._record import TopicPartition
from sharecons.member.skipped_records import new_partitions, new_topics
from sharecons.protocol.admin.models import GroupOffset
from sharecons.protocol.admin.requests import Reply
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.waiting import until

pytestmark = pytest.mark.anyio

RESET = "share.auto.offset.reset"
LINE = "the group starts at the end of partitions that it has not read"


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=3)
        broker.create_topic("refunds", partitions=1)
        for partition in range(3):
            broker.produce("orders", [b"x"] * 4, partition=partition)
        broker.produce("refunds", [b"x"] * 5)
        yield broker


@asynccontextmanager
async def consuming(
    broker: EmbeddedBroker, *topics: str, **options: Any
) -> AsyncIterator[ShareConsumer[Any, Any]]:
    async with ShareConsumer(
        *(topics or ("orders",)),
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        **options,
    ) as consumer:
        await until(lambda: bool(consumer.assignment), within=60.0)
        yield consumer


async def let_start(broker: EmbeddedBroker, count: int) -> None:
    """Let the group settle the records of "orders"; then set its config to latest."""
    broker.set_group_config("billing", {RESET: "earliest"})
    async with consuming(broker) as consumer:
        with anyio.fail_after(30):
            async for record in consumer:
                record.accept()
                count -= 1
                if not count:
                    break
            await consumer.commit()
    broker.set_group_config("billing", {RESET: "latest"})
    broker.forget_requests()


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.levelname for each in caplog.records if LINE in each.getMessage()]


@pytest.mark.parametrize("reset", [None, "not given"])
async def test_new_group_that_starts_at_the_end_warns_of_the_records(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, reset: str | None
) -> None:
    options = {} if reset else {"auto_offset_reset": None}
    async with consuming(broker, "orders", "refunds", **options):
        pass

    assert ["WARNING"] == levels(caplog)
    assert "'records': 17" in caplog.text or "records=17" in caplog.text
    assert "topics='orders: 12, refunds: 5'" in caplog.text
    assert "--auto-offset-reset earliest" in caplog.text
    assert "share.auto.offset.reset=earliest" in caplog.text


async def test_latest_that_was_chosen_is_no_warning(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        async with consuming(broker, auto_offset_reset="latest"):
            pass

    assert ["INFO"] == levels(caplog)


async def test_latest_that_is_set_for_the_group_is_no_warning(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.set_group_config("billing", {RESET: "latest"})
    with caplog.at_level("INFO"):
        async with consuming(broker):
            pass

    assert ["INFO"] == levels(caplog)


@pytest.mark.parametrize("reset", ["earliest", "by_duration:PT1H"])
async def test_group_that_does_not_start_at_the_end_reads_no_offsets(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, reset: str
) -> None:
    with caplog.at_level("INFO"):
        async with consuming(broker, auto_offset_reset=reset):
            pass

    assert [] == levels(caplog)
    assert not requests(broker, "DescribeShareGroupOffsets")


async def test_group_that_has_started_costs_one_request(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    await let_start(broker, 12)
    with caplog.at_level("INFO"):
        async with consuming(broker):
            pass

    assert [] == levels(caplog)
    assert 1 == len(requests(broker, "DescribeShareGroupOffsets"))
    assert not requests(broker, "ListOffsets")


async def test_topic_that_is_new_to_a_group_is_counted_alone(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    await let_start(broker, 12)
    with caplog.at_level("INFO"):
        async with consuming(broker, "orders", "refunds"):
            pass

    (line,) = [each for each in caplog.records if LINE in each.getMessage()]
    assert "topics='refunds: 5'" in line.getMessage()


async def test_topic_without_records_is_no_warning(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.create_topic("empty", partitions=1)
    with caplog.at_level("INFO"):
        async with consuming(broker, "empty"):
            pass

    assert [] == levels(caplog)


async def test_topic_that_does_not_exist_is_no_error(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async with consuming(broker, "orders", "later"):
        pass

    assert ["WARNING"] == levels(caplog)


@pytest.mark.parametrize(
    "api", ["DescribeShareGroupOffsets", "ListOffsets", "Metadata"]
)
@pytest.mark.parametrize("action", ["stall", "cut", "refuse"])
async def test_failure_of_the_count_neither_fails_nor_delays_the_consumer(
    broker: EmbeddedBroker, api: str, action: str
) -> None:
    fault = broker.faults.on(api, times=1)
    arguments = ["GROUP_AUTHORIZATION_FAILED"] if action == "refuse" else []
    hit = getattr(fault, action)(*arguments)
    started = anyio.current_time()
    async with consuming(broker, request_timeout=5.0) as consumer:
        assert anyio.current_time() - started < 5.0 + 10.0
        broker.produce("orders", [b"late"], partition=0)
        assert consumer.connected
    assert hit.hits


async def test_coordinator_that_is_loading_is_requested_again(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    fault = broker.faults.on("DescribeShareGroupOffsets", times=3)
    hits = fault.refuse("COORDINATOR_LOAD_IN_PROGRESS")
    async with consuming(broker):
        pass

    assert 3 == hits.hits
    assert ["WARNING"] == levels(caplog)


async def test_coordinator_that_does_not_exist_yet_is_looked_up_again(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.faults.on("DescribeShareGroupOffsets").refuse("NOT_COORDINATOR")
    found = broker.faults.on("FindCoordinator", times=2)
    found.refuse("COORDINATOR_NOT_AVAILABLE")
    async with consuming(broker):
        pass

    assert ["WARNING"] == levels(caplog)


async def test_coordinator_on_another_broker_is_requested() -> None:
    async with EmbeddedBroker(brokers=3, settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=3)
        broker.produce("orders", [b"x"] * 9)
        for node_id in broker.brokers:
            broker.move_coordinator("billing", node_id)
            broker.forget_requests()
            async with ShareConsumer(
                "orders",
                group_id="billing",
                bootstrap_servers=broker.brokers[1],
                network=broker.network,
            ):
                pass

            sent = requests(broker, "DescribeShareGroupOffsets")
            assert sent[-1].node_id == node_id
            assert (1 if node_id == 1 else 2) == len(sent)


def requests(broker: EmbeddedBroker, api: str) -> list[Any]:
    return [each for each in broker.requests if each.api == api]


def offsets(**starts: int | None) -> dict[TopicPartition, Reply[GroupOffset]]:
    """Return offsets of partitions, by names such as `a0`; None: not started."""
    return {
        TopicPartition(name[0], int(name[1])): Reply(
            0, None, GroupOffset(start_offset=start, leader_epoch=None, lag=None)
        )
        for name, start in starts.items()
    }


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, ["a", "b"]),
        ({"a0": 5}, ["b"]),
        ({"a0": 0, "b0": 0}, []),
        ({"a0": 5, "a1": None, "b0": 1}, ["a"]),
        ({"a0": None, "b0": 1}, ["a"]),
    ],
)
def test_topics_with_a_partition_that_is_not_started_are_new(
    found: dict[str, int | None], expected: list[str]
) -> None:
    assert expected == new_topics(["a", "b"], offsets(**found))


def test_partitions_without_a_start_offset_are_new() -> None:
    partitions = [TopicPartition("a", number) for number in range(3)]

    assert partitions[1:] == new_partitions(partitions, offsets(a0=5, a1=None))


async def test_start_that_kafka_4_1_does_not_store_is_logged(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "sharecons.member.skipped_records")
    broker.faults.on("AlterShareGroupOffsets", times=None).change(
        lambda response, _: {**response, "responses": []}
    )
    async with consuming(broker):
        pass

    (line,) = (text for text in caplog.messages if "not stored" in text)
    assert "use Kafka 4.2 or newer" in line
    assert ["WARNING"] == levels(caplog)
