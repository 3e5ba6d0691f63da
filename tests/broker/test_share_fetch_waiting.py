"""ShareFetch that waits: the events that wake it, and its responses.

Measured on Kafka 4.3.0: records released by another member do not wake it.
"""

import anyio
import pytest
from kio.schema.errors import ErrorCode

from tests.broker.share_members import (
    ACCEPT,
    RELEASE,
    TOPIC,
    acquired,
    codes,
    group_of,
    parts,
    run_together,
    timed,
)

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True


@pytest.mark.parametrize("nothing", ["max_bytes", "max_records"])
async def test_fetch_of_zero_records_returns_immediately(nothing):
    async with group_of() as group:
        group.produce()
        response = group.member("ann").fetch(wait=5.0, **{nothing: 0})

        assert (0.0, []) == (await timed(_parts_of(response)))


async def _parts_of(response):
    return parts(await response)


async def test_fetch_waits_for_min_bytes_or_max_wait():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        seconds, response = await timed(ann.fetch(wait=2.0, min_bytes=10_000))

    assert (2.0, [(0, 9, 1)]) == (seconds, acquired(response))


async def fetch_during(change, **config):
    """Return bob's response to a fetch, with a change to ann's records meanwhile."""
    async with group_of(**config) as group:
        group.produce()
        ann, bob = group.member("ann"), group.member("bob")
        await ann.fetch()
        await bob.fetch()
        (seconds, response), _ = await run_together(
            (0.0, lambda: bob.fetch(wait=3.0)), (0.5, lambda: change(group, ann))
        )
    return seconds, acquired(response)


async def test_new_records_wake_a_waiting_fetch():
    async def produce(group, ann):
        group.produce(3)

    assert (0.5, [(10, 12, 1)]) == await fetch_during(produce)


async def test_moved_start_offset_wakes_a_waiting_fetch():
    async def accept_some(group, ann):
        await ann.acknowledge((0, 3, ACCEPT), (4, 9, RELEASE))

    assert (0.5, [(4, 9, 2)]) == await fetch_during(accept_some)


async def test_lock_expiry_wakes_a_waiting_fetch():
    async def nothing(group, ann):
        pass

    lock = {"record_lock_duration_ms": "1000"}
    assert (1.0, [(0, 9, 2)]) == await fetch_during(nothing, **lock)


async def test_expire_locks_wakes_a_waiting_fetch():
    async def expire(group, ann):
        group.kafka.expire_locks("g", TOPIC, 0)

    assert (0.5, [(0, 9, 2)]) == await fetch_during(expire)


@pytest.mark.parametrize("way", ["release", "close", "cut"])
async def test_released_records_are_fetched_at_the_end_of_the_wait(way):
    async def release(group, ann):
        if way == "release":
            await ann.acknowledge((0, 9, RELEASE))
        elif way == "close":
            await ann.close()
        else:
            await ann.cut()

    assert (3.0, [(0, 9, 2)]) == await fetch_during(release)


@pytest.mark.timeout(20)
async def test_moved_leader_does_not_busy_a_waiting_fetch_with_lost_locks():
    """It looked at a lock that had ended with the move again and again."""
    async with group_of(brokers=2, record_lock_duration_ms="1000") as group:
        group.kafka.move_leader(TOPIC, 0, 1)
        group.produce()
        ann, bob = group.member("ann"), group.member("bob")
        await ann.fetch()
        await bob.fetch()

        async def move():
            group.kafka.move_leader(TOPIC, 0, 2)

        (seconds, response), _ = await run_together(
            (0.0, lambda: bob.fetch(wait=3.0)), (0.5, move)
        )

    assert (3.0, []) == (seconds, acquired(response))


async def test_disconnected_fetch_acquires_nothing():
    async with group_of() as group:
        ann, bob = group.member("ann"), group.member("bob")
        await ann.fetch()
        with anyio.move_on_after(0.5):
            await ann.fetch(wait=60.0)
        await ann.cut()
        group.produce()

        assert [(0, 9, 1)] == acquired(await bob.fetch())


async def test_later_request_fails_a_waiting_fetch():
    async with group_of() as group:
        group.produce(1)
        ann, other = group.member("ann"), group.member("ann")
        await ann.fetch()
        other.epoch = 2
        (_, fetched), (seconds, acknowledged) = await run_together(
            (0.0, lambda: ann.fetch(wait=2.0)),
            (0.5, lambda: other.acknowledge((0, 0, ACCEPT))),
        )

    assert (0.0, [ErrorCode.none]) == (seconds, codes(acknowledged))
    assert fetched.error_code is ErrorCode.invalid_share_session_epoch
