"""Consumers that leave while their coordinator moves, loads or is not reachable."""

import anyio
import pytest

from tests.net.embedded import (
    GROUP,
    STORM,
    SlowNetwork,
    busiest_second,
    consuming,
    next_record,
    requests,
    running,
)
from tests.waiting import until
from tests.worker.working import Handled, working

pytestmark = pytest.mark.anyio

HEARTBEAT = "ShareGroupHeartbeat"
PASSING = [
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
]


def is_leave(request, context):
    return request.member_epoch == -1


def leaves(broker, **options):
    return broker.faults.on(HEARTBEAT, where=is_leave, **options)


@pytest.mark.parametrize("code", PASSING)
async def test_leave_rejected_by_a_moving_coordinator_is_repeated(code):
    async with running(1) as broker:
        leaves(broker, times=3).refuse(code)
        async with consuming(broker) as consumer:
            await next_record(consumer)
            closing = anyio.current_time()

        assert anyio.current_time() - closing < 2
        assert not broker.group(GROUP).members


@pytest.mark.parametrize("handled", [False, True])
async def test_lost_leave_is_repeated(handled):
    async with running(1) as broker:
        leaves(broker, times=2).cut(after=handled)
        async with consuming(broker) as consumer:
            await next_record(consumer)
            closing = anyio.current_time()

        assert anyio.current_time() - closing < 2
        assert not broker.group(GROUP).members


@pytest.mark.parametrize("code", PASSING[1:])
async def test_lookup_rejected_during_a_leave_is_repeated(code):
    async with running(1) as broker:
        async with consuming(broker) as consumer:
            await next_record(consumer)
            leaves(broker).refuse("NOT_COORDINATOR")
            broker.faults.on("FindCoordinator", times=3).refuse(code)

        assert not broker.group(GROUP).members


async def test_leave_follows_the_coordinator_to_another_broker():
    async with running(1, brokers=2) as broker:
        async with consuming(broker) as consumer:
            await next_record(consumer)
            broker.move_coordinator(GROUP, to=2)
            moved_at = anyio.current_time()

        assert requests(broker, HEARTBEAT, moved_at, node=2)
        assert not broker.group(GROUP).members


@pytest.mark.parametrize("code", [*PASSING, "UNKNOWN_SERVER_ERROR"])
async def test_leave_that_is_always_rejected_ends_with_the_close_timeout(code):
    async with running(1) as broker:
        async with consuming(broker) as consumer:
            await next_record(consumer)
            leaves(broker, times=None).refuse(code)
            closing = anyio.current_time()
            await consumer.aclose(timeout=5)

        assert 4.9 < anyio.current_time() - closing < 5.5
        assert busiest_second(broker) <= STORM


async def test_close_without_a_reachable_broker_ends_with_its_timeout():
    async with running(1) as broker:
        network = SlowNetwork(broker)
        async with consuming(broker, network=network) as consumer:
            await next_record(consumer)
            broker.stop_broker(1)
            before = len(network.connects)
            closing = anyio.current_time()
            await consumer.aclose(timeout=5)

        assert anyio.current_time() - closing < 5.5
        assert len(network.connects) - before < 40


async def test_worker_does_not_wait_for_a_leave_that_is_always_rejected():
    async with running(1) as broker:
        leaves(broker, times=None).refuse("COORDINATOR_LOAD_IN_PROGRESS")
        handled = Handled()
        async with working(broker, handled):
            await until(lambda: handled.calls)
            stopping = anyio.current_time()

        assert anyio.current_time() - stopping < 2
        assert len(requests(broker, HEARTBEAT, stopping)) > 1


async def test_unsubscribed_member_repeats_its_leave_and_can_join_again():
    async with running(2) as broker:
        leaves(broker, times=4).refuse("COORDINATOR_NOT_AVAILABLE")
        async with consuming(broker) as consumer:
            await next_record(consumer)
            consumer.unsubscribe()
            await until(lambda: not broker.group(GROUP).members)
            consumer.subscribe("orders")
            record = await next_record(consumer)

        assert record is not None
