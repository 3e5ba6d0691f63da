"""Consumers whose leaders return errors for fetches."""

import anyio
import pytest

from sharecons.errors import AuthorizationError, BrokerError
from tests.net.embedded import (
    GROUP,
    STORM,
    busiest_second,
    consuming,
    next_record,
    no_leader,
    read_records,
    record_requests,
    refuse,
    requests,
    running,
)

pytestmark = pytest.mark.anyio

FETCH = "ShareFetch"

PASSING = [
    "SHARE_SESSION_NOT_FOUND",
    "INVALID_SHARE_SESSION_EPOCH",
    "SHARE_SESSION_LIMIT_REACHED",
    "UNKNOWN_SERVER_ERROR",
    "KAFKA_STORAGE_ERROR",
    "REQUEST_TIMED_OUT",
    9999,
]
PARTITION_RAISED = {
    "TOPIC_AUTHORIZATION_FAILED": AuthorizationError,
    "CORRUPT_MESSAGE": BrokerError,
    "INVALID_REQUEST": BrokerError,
}
PARTITION_RETRIABLE = [
    "UNKNOWN_TOPIC_OR_PARTITION",
    "UNKNOWN_TOPIC_ID",
    "INCONSISTENT_TOPIC_ID",
    "NOT_LEADER_OR_FOLLOWER",
    "FENCED_LEADER_EPOCH",
    "LEADER_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "UNKNOWN_SERVER_ERROR",
]


def reject_fetches(broker, code, times=None):
    refuse(broker.faults.on(FETCH, times=times), code)


async def test_forbidden_group_in_a_fetch_is_raised_by_every_call():
    async with running(1) as broker:
        reject_fetches(broker, "GROUP_AUTHORIZATION_FAILED")
        async with consuming(broker) as consumer:
            for _ in range(3):
                with pytest.raises(
                    AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"
                ):
                    await anext(aiter(consumer))
            await anyio.sleep(30)

        assert 1 == len(requests(broker, FETCH))


@pytest.mark.parametrize("code", PASSING)
async def test_fetch_error_that_ends_is_recovered(code):
    async with running(3) as broker:
        reject_fetches(broker, code, times=4)
        async with consuming(broker) as consumer:
            records = await read_records(consumer, 3)

        assert [0, 1, 2] == [record.offset for record in records]
        assert {1} == {record.delivery_count for record in records}
        assert busiest_second(broker) <= STORM


@pytest.mark.parametrize("code", PASSING)
async def test_persistent_fetch_error_causes_no_request_storm(code):
    async with running(3) as broker:
        reject_fetches(broker, code)
        async with consuming(broker) as consumer:
            assert await next_record(consumer) is None

        assert busiest_second(broker) <= STORM
        assert len(requests(broker, FETCH)) < 60 * 3


async def test_full_session_cache_of_a_broker_delays_the_first_record():
    """After SHARE_SESSION_LIMIT_REACHED the consumer opens no other connection."""
    async with running(1) as broker:
        fetches = record_requests(broker, FETCH)
        reject_fetches(broker, "SHARE_SESSION_LIMIT_REACHED", times=8)
        async with consuming(broker) as consumer:
            started = anyio.current_time()
            assert 0 == (await next_record(consumer)).offset

            assert anyio.current_time() - started < 15
        epochs = [request.share_session_epoch for request, _ in fetches]
        assert {0} == set(epochs[:9])
        assert 1 == len({id(context.connection) for _, context in fetches})


async def test_session_that_ends_just_after_a_reconnect_is_opened_again():
    """A broker that ends the lost connection's session late can end the new one."""
    async with running(2) as broker:
        fetches = record_requests(broker, FETCH)
        async with consuming(broker, acknowledgement="explicit") as consumer:
            for record in await read_records(consumer, 2):
                record.accept()
            await consumer.commit()
            broker.faults.on(FETCH, times=1).cut()
            broker.produce("orders", [b"c"])
            assert 2 == (await next_record(consumer)).offset
            opened = [request.share_session_epoch for request, _ in fetches].count(0)
            broker.forget_session(GROUP, consumer.member_id)
            again = await next_record(consumer)
            again.accept()
            (result,) = await consumer.commit()

        assert (2, 2) == (again.offset, again.delivery_count)
        assert result.error is None
        epochs = [request.share_session_epoch for request, _ in fetches]
        assert opened + 1 == epochs.count(0)
        assert busiest_second(broker) <= STORM


# Errors of partitions.


@pytest.mark.parametrize(("code", "kind"), PARTITION_RAISED.items())
async def test_partition_error_that_ends_is_raised_and_recovered(code, kind):
    async with running(1) as broker:
        broker.faults.on(FETCH).refuse_partitions(code)
        async with consuming(broker) as consumer:
            with pytest.raises(kind, match=f"orders-0: {code}"):
                await next_record(consumer)
            assert 0 == (await next_record(consumer)).offset


@pytest.mark.parametrize("code", PARTITION_RETRIABLE)
async def test_retriable_partition_error_is_recovered_without_raising(code):
    async with running(1) as broker:
        broker.faults.on(FETCH, times=3).refuse_partitions(code, leader=no_leader)
        async with consuming(broker) as consumer:
            assert 0 == (await next_record(consumer)).offset
        assert busiest_second(broker) <= STORM


@pytest.mark.parametrize("code", PARTITION_RETRIABLE)
async def test_persistent_retriable_partition_error_causes_no_request_storm(code):
    async with running(1) as broker:
        broker.faults.on(FETCH, times=None).refuse_partitions(code, leader=no_leader)
        async with consuming(broker) as consumer:
            assert await next_record(consumer, within=30) is None

        assert busiest_second(broker) <= STORM
        assert len(broker.requests) < 30 * 8


# Throttling.


@pytest.mark.parametrize("api", ["ShareGroupHeartbeat", FETCH, "ShareAcknowledge"])
async def test_throttle_times_are_obeyed(api):
    async with running(50) as broker:
        # The broker reads on: a request that is sent too early is seen.
        broker.faults.on(api, times=None).change(
            lambda response, context: {**response, "throttle_time": 7}
        )
        async with consuming(broker, acknowledgement="explicit") as consumer:
            with anyio.move_on_after(60):
                async for record in consumer:
                    record.accept()
                    await anyio.sleep(0.5)

            times = [request.at for request in requests(broker, api)]
            assert len(times) >= 3
            for before, after in zip(times, times[1:], strict=False):
                assert after - before >= 6.999
