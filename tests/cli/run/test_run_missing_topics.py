"""Readiness of a worker whose topics do not exist."""

import time

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.cli.run.missing_topics import MISSING_AFTER, MissingTopicsWatch
from sharecons.testing import EmbeddedBroker
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock


async def test_worker_is_not_ready_once_topics_are_missing_for_some_time():
    async with EmbeddedBroker(listen=False) as broker:
        broker.create_topic("orders")
        consumer = ShareConsumer(
            "orders",
            "refunds",
            "retries",
            group_id="billing",
            bootstrap_servers=broker.bootstrap_servers,
            network=broker.network,
        )
        watch = MissingTopicsWatch(lambda: consumer.missing_topics, anyio.current_time)
        async with consumer, anyio.create_task_group() as tasks:
            tasks.start_soon(watch.run)
            await until(lambda: consumer.missing_topics)
            await anyio.sleep(MISSING_AFTER - 2)
            assert watch.problem() is None
            await anyio.sleep(4)
            problem = watch.problem()
            broker.create_topic("refunds")
            await anyio.sleep(4)
            later = watch.problem()
            broker.create_topic("retries")
            await anyio.sleep(4)
            last = watch.problem()
            tasks.cancel_scope.cancel()

    assert problem == (
        "subscribed topics do not exist for 30 s: 'refunds', 'retries'; create them, "
        "or correct the subscription"
    )
    assert "'refunds'" not in later
    assert "'retries'" in later
    assert last is None


def test_topic_that_appears_for_a_moment_is_missing_anew():
    now = time.monotonic()
    names = {"orders"}
    watch = MissingTopicsWatch(lambda: names, lambda: now)
    watch.look()
    now += MISSING_AFTER - 1
    names = set()
    watch.look()
    names = {"orders"}
    watch.look()
    now += 2
    assert watch.problem() is None
    now += MISSING_AFTER
    assert "'orders'" in watch.problem()
