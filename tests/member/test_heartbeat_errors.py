"""Consumers whose coordinator returns errors."""

from itertools import pairwise

import anyio
import pytest

from sharecons.errors import AuthorizationError, BrokerError, GroupError
from sharecons.testing.broker.codec import ErrorCode
from tests.net.embedded import (
    STORM,
    accepted,
    accepted_offsets,
    busiest_second,
    consuming,
    next_record,
    record_requests,
    refuse,
    requests,
    running,
)

pytestmark = pytest.mark.anyio

HEARTBEAT = "ShareGroupHeartbeat"

FATAL_ERRORS = {
    "GROUP_AUTHORIZATION_FAILED": AuthorizationError,
    "GROUP_MAX_SIZE_REACHED": GroupError,
    "INCONSISTENT_GROUP_PROTOCOL": GroupError,
    "INVALID_GROUP_ID": GroupError,
    "GROUP_ID_NOT_FOUND": GroupError,
    "INVALID_REQUEST": BrokerError,
}
PASSING = [
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "UNKNOWN_MEMBER_ID",
    "FENCED_MEMBER_EPOCH",
    "UNKNOWN_SERVER_ERROR",
    "REQUEST_TIMED_OUT",
    "STALE_MEMBER_EPOCH",
    "TOPIC_AUTHORIZATION_FAILED",
    9999,
]


def reject_heartbeats(broker, code, times=None):
    refuse(broker.faults.on(HEARTBEAT, times=times), code)


@pytest.mark.parametrize(("code", "kind"), FATAL_ERRORS.items())
async def test_fatal_heartbeat_error_is_raised_by_every_call(code, kind):
    """No further heartbeat is sent."""
    number = ErrorCode[code.lower()]
    async with running(1) as broker:
        broker.faults.on(HEARTBEAT, times=None).respond(
            lambda request, context: {"error_code": number, "error_message": "because"}
        )
        async with consuming(broker) as consumer:
            with pytest.raises(kind, match=f"billing.*{code}.*because"):
                await anext(aiter(consumer))
            for call in (
                lambda: anext(aiter(consumer)),
                lambda: anext(consumer.batches()),
                lambda: consumer.poll(timeout=1),
                lambda: consumer.commit(),
            ):
                with pytest.raises(kind) as caught:
                    await call()
                assert number.value == caught.value.code
            await anyio.sleep(30)

        assert 1 == len(requests(broker, HEARTBEAT))


@pytest.mark.parametrize("code", PASSING)
async def test_heartbeat_error_that_ends_is_recovered(code):
    async with running(1) as broker:
        reject_heartbeats(broker, code, times=4)
        async with consuming(broker) as consumer:
            try:
                record = await next_record(consumer)
            except AuthorizationError:
                assert code == "TOPIC_AUTHORIZATION_FAILED"
                record = await next_record(consumer)

            assert 0 == record.offset
        assert busiest_second(broker) <= STORM


@pytest.mark.parametrize("code", PASSING)
async def test_persistent_heartbeat_error_causes_no_request_storm(code):
    raised = 0
    async with running(1) as broker:
        reject_heartbeats(broker, code)
        async with consuming(broker) as consumer:
            with anyio.move_on_after(60):
                while True:
                    try:
                        await anext(aiter(consumer))
                    except AuthorizationError:
                        raised += 1

        assert (code == "TOPIC_AUTHORIZATION_FAILED") == raised
        assert busiest_second(broker) <= STORM
        assert len(requests(broker, HEARTBEAT)) < 60 * 3


# The lookup of the coordinator.


async def test_forbidden_group_in_the_coordinator_lookup_is_raised():
    async with running(1) as broker:
        lookups = broker.faults.on("FindCoordinator", times=None)
        lookups.refuse("GROUP_AUTHORIZATION_FAILED")
        async with consuming(broker) as consumer:
            for _ in range(2):
                with pytest.raises(
                    AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"
                ):
                    await anext(aiter(consumer))
        assert 1 == len(requests(broker, "FindCoordinator"))


# Members that stay.


async def test_member_of_a_full_group_fails_and_other_members_continue():
    async with running(1, settings={"group.share.max.size": 1}) as broker:
        async with consuming(broker) as first:
            assert 0 == (await next_record(first)).offset
            async with consuming(broker) as second:
                for _ in range(2):
                    with anyio.fail_after(60), pytest.raises(GroupError) as caught:
                        await second.poll(timeout=30)
                    assert "GROUP_MAX_SIZE_REACHED" == caught.value.name
            broker.produce("orders", [b"b"])

            assert 1 == (await next_record(first)).offset


async def test_heartbeats_slower_than_their_interval_do_not_overlap():
    async with running() as broker:
        heartbeats = record_requests(broker, HEARTBEAT)
        async with consuming(broker) as consumer:
            assert await next_record(consumer, within=1) is None
            broker.faults.on(HEARTBEAT, times=None).delay(7)
            del heartbeats[:]
            began = anyio.current_time()
            assert await next_record(consumer, within=60) is None
            broker.produce("orders", [b"a"])
            assert 0 == (await next_record(consumer)).offset
            times = [each.at for each in requests(broker, HEARTBEAT, since=began)]
            broker.faults.clear()

        gaps = [after - before for before, after in pairwise(times)]
        assert len(gaps) >= 3
        assert all(gap >= 7 for gap in gaps), gaps
        assert not [request for request, _ in heartbeats if request.member_epoch == 0]


@pytest.mark.slow("several session timeouts with heartbeats")
async def test_healthy_member_is_never_fenced():
    """Ten session timeouts, mostly without records."""
    async with running() as broker:
        heartbeats = record_requests(broker, HEARTBEAT)
        async with consuming(broker, acknowledgement="explicit") as consumer:
            for number in range(10):
                assert await next_record(consumer, within=45) is None
                broker.produce("orders", [b"a"])
                record = await next_record(consumer)
                assert number == record.offset
                record.accept()
            joins = [request for request, _ in heartbeats if request.member_epoch == 0]

    assert 1 == len(joins)


async def test_record_of_a_fenced_member_can_be_acknowledged():
    async with running(1) as broker:
        async with consuming(broker, acknowledgement="explicit") as consumer:
            record = await next_record(consumer)
            broker.forget_member("billing", consumer.member_id)
            await anyio.sleep(6)  # at least one heartbeat
            record.accept()
            (result,) = await consumer.commit()

        assert result.error is None
        assert 1 == accepted(broker)


async def test_fatal_error_ends_delivery_and_closing_sends_acknowledgements():
    async with running(2) as broker:
        async with consuming(
            broker, acknowledgement="explicit", max_records=1
        ) as consumer:
            record = await next_record(consumer)
            acks = broker.faults.on("ShareAcknowledge", times=1)
            acks.refuse_partitions("REQUEST_TIMED_OUT")
            record.accept()
            reject_heartbeats(broker, "GROUP_AUTHORIZATION_FAILED")
            with anyio.fail_after(60):
                while True:
                    try:
                        await consumer.poll(timeout=0.1, max_records=1)
                    except AuthorizationError:
                        break
            broker.produce("orders", [b"c"])
            for _ in range(2):
                with pytest.raises(AuthorizationError):
                    await consumer.poll(timeout=5)

        assert 0 in accepted_offsets(broker)
