"""Consumers of brokers whose settings do not fit: they wait, and report why."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.admin import ShareGroupAdmin
from sharecons.inspection.diagnosis.checks import Check, Verdict
from sharecons.inspection.preflight import check_cluster
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import HALVES, VERSION, Admin
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_ASYNCIO, pytest.mark.slow("starts a Kafka cluster")]

StartBroker = Callable[[Mapping[str, str]], AbstractContextManager[str]]


@contextmanager
def start_real(settings: Mapping[str, str]) -> Iterator[str]:
    with KafkaCluster(VERSION, config=settings) as cluster:
        yield cluster.bootstrap_servers


@contextmanager
def start_embedded(settings: Mapping[str, str]) -> Iterator[str]:
    with EmbeddedBroker(settings=settings) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(params=HALVES)
def start_broker(request: pytest.FixtureRequest) -> StartBroker:
    """Return what starts one broker with settings, and yields its address."""
    return start_real if request.param == "kafka" else start_embedded


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[str]]:
    """Return the lines with a text, each with its level."""
    caplog.set_level(logging.INFO, "sharecons")

    def found(text: str) -> list[str]:
        lines = [f"{each.levelname} {each.getMessage()}" for each in caplog.records]
        return [line for line in lines if text in line]

    return found


def consuming(
    bootstrap_servers: str, topic: str, group_id: str = "billing"
) -> ShareConsumer[Any, Any]:
    return ShareConsumer(
        topic,
        group_id=group_id,
        bootstrap_servers=bootstrap_servers,
        auto_offset_reset="earliest",
    )


async def test_state_topic_that_cannot_be_created_is_reported(
    start_broker: StartBroker, lines: Callable[[str], list[str]]
) -> None:
    """The default replication factor of Kafka needs three brokers."""
    factor = "share.coordinator.state.topic.replication.factor"
    with start_broker({factor: "3"}) as servers:
        topic = Admin(servers).create_topic()
        before = await state_topic_check(servers)
        async with consuming(servers, topic) as consumer:
            await until(lambda: lines("no partitions assigned"), within=30)
            (warning,) = lines("no partitions assigned")
            (problem,) = consumer.problems
            assert not consumer.assignment
        after = await state_topic_check(servers)

    assert warning.startswith("WARNING")
    assert f"topics={topic}" in warning
    assert "have not created the topic __share_group_state" in warning
    assert f"{factor} (3 by default) must be at most 1, the number of" in problem
    for check in (before, after):
        assert Verdict.FAIL is check.verdict
        assert "cannot create it" in check.found
        assert f"{factor} is 3, with 1 broker" in check.found
        assert f"set {factor} to at most 1" in check.advice


async def test_state_topic_with_fewer_replicas_than_its_min_isr_is_written(
    start_broker: StartBroker,
) -> None:
    """Brokers then require all replicas to be in sync, and no more."""
    prefix = "share.coordinator.state.topic"
    settings = {f"{prefix}.replication.factor": "1", f"{prefix}.min.isr": "2"}
    with start_broker(settings) as servers:
        topic = Admin(servers).create_topic()
        before = await state_topic_check(servers)
        async with consuming(servers, topic) as consumer:
            await until(lambda: consumer.assignment, within=30)
        after = await state_topic_check(servers)

    assert (Verdict.WARN, Verdict.WARN) == (before.verdict, after.verdict)


async def state_topic_check(servers: str) -> Check:
    async with ShareGroupAdmin(bootstrap_servers=servers) as admin:
        checks = await check_cluster(admin)
    (check,) = (each for each in checks if each.name == "state topic")
    return check


async def test_offsets_topic_that_cannot_be_created_is_reported(
    start_broker: StartBroker, lines: Callable[[str], list[str]]
) -> None:
    name = "offsets.topic.replication.factor"
    with start_broker({name: "3"}) as servers:
        topic = Admin(servers).create_topic()
        async with consuming(servers, topic) as consumer:
            await until(lambda: lines("heartbeats not accepted"), within=30)
            (warning,) = lines("heartbeats not accepted")
            assert "request=FindCoordinator reason=COORDINATOR_NOT_AVAILABLE" in warning
            assert name in warning
            assert not consumer.connected
        async with ShareGroupAdmin(bootstrap_servers=servers) as admin:
            checks = {each.name: each for each in await check_cluster(admin)}

    assert Verdict.FAIL is checks["offsets topic"].verdict
    assert f"{name} is 3, with 1 broker" in checks["offsets topic"].found


async def test_full_session_cache_is_logged_until_a_session_is_free(
    start_broker: StartBroker, lines: Callable[[str], list[str]]
) -> None:
    settings = {"group.share.max.share.sessions": "1", "group.share.max.size": "1"}
    with start_broker(settings) as servers:
        admin = Admin(servers)
        topic = admin.create_topic()
        admin.produce(topic, [b"1"])
        async with consuming(servers, topic) as first:
            await anext(aiter(first))  # it has the broker's only session
            async with consuming(servers, topic, "shipping") as second:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(anext, aiter(second))
                    await until(lambda: lines("fetches rejected"), within=30)
                    (warning,) = lines("fetches rejected")
                    assert warning.startswith("WARNING fetches rejected, retrying")
                    assert "reason=SHARE_SESSION_LIMIT_REACHED" in warning
                    assert "raise its group.share.max.share.sessions" in warning
                    assert not second.connected
                    assert 1 == second.metrics()["sharecons-problems"]
                    await first.aclose()
                    await until(lambda: second.connected, within=30)
            assert lines("fetches accepted again")[0].startswith("INFO")
