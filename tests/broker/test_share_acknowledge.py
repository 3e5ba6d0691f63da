"""Acknowledgements in ShareAcknowledge and in ShareFetch."""

import anyio
import pytest
from kio.schema.errors import ErrorCode

from tests.broker.share_members import (
    ACCEPT,
    RELEASE,
    RENEW,
    acquired,
    codes,
    group_of,
    parts,
    timed,
)

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True


async def test_released_records_are_not_in_the_same_response():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()
        group.produce(5)
        topics = ann.named((0, ((0, 4, RELEASE), (5, 9, ACCEPT))))

        assert [(10, 14, 1)] == acquired(await ann.fetch(topics=topics))
        assert [(0, 4, 2)] == acquired(await ann.fetch())


async def test_acknowledgement_results_are_in_the_fetch_response():
    async with group_of(partitions=2) as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch(0, 1)
        good = await ann.fetch(topics=ann.named((0, ((0, 4, ACCEPT),))))
        bad = await ann.fetch(topics=ann.named((0, ((3, 7, ACCEPT), (12, 12, ACCEPT)))))

    assert [0] == [part.acknowledge_error_code for part in parts(good)]
    assert [(0, 42)] == [
        (part.partition_index, part.acknowledge_error_code) for part in parts(bad)
    ]


async def test_renewal_fetches_nothing():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()
        group.produce()
        renewal = {"topics": ann.named((0, ((0, 9, RENEW),))), "is_renew_ack": True}
        none = {"max_records": 0, "max_bytes": 0, "min_bytes": 0}
        await anyio.sleep(20.0)

        assert [] == acquired(await ann.fetch(**renewal, **none))
        await anyio.sleep(20.0)
        assert [ErrorCode.none] == codes(await ann.acknowledge((0, 9, ACCEPT)))
        rejected = await ann.fetch(**renewal)
        assert rejected.error_code is ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ([(0, 0, RENEW)], ErrorCode.invalid_request),  # without is_renew_ack
        ([(0, 0, (5,))], ErrorCode.invalid_request),
        ([(0, 0, ())], ErrorCode.invalid_request),
        ([(0, 3, (1, 1))], ErrorCode.invalid_request),
        ([(3, 0, ACCEPT)], ErrorCode.invalid_request),
        ([(4, 5, ACCEPT), (0, 1, ACCEPT)], ErrorCode.invalid_request),
        ([(8, 12, ACCEPT)], ErrorCode.invalid_request),
        ([(0, 9, (1,) * 10)], ErrorCode.none),
    ],
)
async def test_invalid_acknowledgements_are_rejected(batches, code):
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()

        assert [code] == codes(await ann.acknowledge(*batches))


async def test_acknowledgements_cannot_open_a_session():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        acknowledged = await ann.acknowledge((0, 0, ACCEPT))
        fetched = await ann.fetch(topics=ann.named((0, ((0, 0, ACCEPT),))))
        ann.epoch = -1
        closed = await ann.acknowledge()

    assert [
        ErrorCode.invalid_share_session_epoch,
        ErrorCode.invalid_request,
        ErrorCode.share_session_not_found,
    ] == [acknowledged.error_code, fetched.error_code, closed.error_code]


async def test_final_fetch_acknowledges_and_releases():
    async with group_of() as group:
        group.produce()
        ann, bob = group.member("ann"), group.member("bob")
        await ann.fetch()
        ann.epoch = -1
        await ann.fetch(topics=ann.named((0, ((0, 4, ACCEPT),))))

        assert [(5, 9, 2)] == acquired(await bob.fetch())


async def test_session_limit_rejects_after_the_wait():
    async with group_of() as group:
        group.kafka.cluster.share_sessions.limit = 1
        await group.member("ann").fetch()
        seconds, response = await timed(group.member("bob").fetch(wait=2.0))

    assert response.error_code is ErrorCode.share_session_limit_reached
    assert 2.0 == seconds
