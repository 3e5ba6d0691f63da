"""ShareFetch: responses and errors.

Over memory, on a virtual clock. The responses were measured on Kafka 4.3.0.
"""

import uuid
from datetime import timedelta

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
)

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True


@pytest.mark.parametrize("version", [1, 2])
async def test_first_fetch_opens_a_session_with_every_partition(version):
    async with group_of(partitions=2) as group:
        group.produce()
        response = await group.member("ann", version=version).fetch(0, 1)

    assert [0, 1] == [part.partition_index for part in parts(response)]
    assert [(0, 9, 1)] == acquired(response)
    assert timedelta(seconds=30) == response.acquisition_lock_timeout
    assert parts(response)[0].records


async def test_later_responses_have_only_changed_partitions():
    async with group_of(partitions=3) as group:
        ann = group.member("ann")
        await ann.fetch(0, 1)
        group.produce(partition=1)

        first = await ann.fetch()
        assert [1] == [part.partition_index for part in parts(first)]
        assert [] == parts(await ann.fetch())
        assert [2] == [part.partition_index for part in parts(await ann.fetch(2))]


async def test_forgotten_partitions_are_not_fetched():
    async with group_of(partitions=2) as group:
        ann = group.member("ann")
        await ann.fetch(0, 1)
        group.produce(partition=0)
        gone = ({"topic_id": group.topic_id, "partitions": (0,)},)

        assert [] == parts(await ann.fetch(forgotten_topics_data=gone))


async def test_max_records_spans_partitions():
    async with group_of(partitions=2) as group:
        group.produce(5, partition=0, batch=1)
        group.produce(5, partition=1, batch=1)
        response = await group.member("ann").fetch(0, 1, max_records=7)

    assert [5, 2] == [last - first + 1 for first, last, _ in acquired(response)]


async def test_records_are_cut_to_the_batches_acquired():
    async with group_of() as group:
        group.produce(30, batch=10)
        ann = group.member("ann")
        response = await ann.fetch(max_records=5)
        one = len(parts(response)[0].records)
        rest = await ann.fetch()

    assert [(0, 9, 1)] == acquired(response)
    assert 2 * one == len(parts(rest)[0].records)


async def test_at_least_one_batch_is_returned():
    async with group_of() as group:
        group.produce(30, batch=10)
        response = await group.member("ann").fetch(max_bytes=1)

    assert [(0, 9, 1)] == acquired(response)


async def test_checked_partitions_have_their_own_first_batch():
    async with group_of(partitions=2) as group:
        ann = group.member("ann")
        await ann.fetch(0, 1)
        for partition in (0, 1):
            group.produce(10, partition=partition)
        first = await ann.fetch(max_bytes=2, max_records=1)
        second = await ann.fetch(max_bytes=2)
        for partition in (0, 1):
            group.produce(5, partition=partition)
        both = await ann.fetch(max_bytes=2)

    assert [[(0, 9, 1)], [(0, 9, 1)]] == [acquired(first), acquired(second)]
    assert [(10, 14, 1), (10, 14, 1)] == acquired(both)


@pytest.mark.parametrize(
    "who", [{"group_id": None}, {"member_id": ""}, {"member_id": "m" * 37}]
)
async def test_request_without_member_is_rejected(who):
    async with group_of() as group:
        response = await group.member("ann").request("share_fetch", **who)

    assert response.error_code is ErrorCode.invalid_request


async def test_unknown_topic_id_is_a_server_error():
    async with group_of() as group:
        group.produce()
        ann, bob = group.member("ann"), group.member("bob")
        unknown = ann.named((0, ()), topic_id=uuid.uuid4())
        response = await ann.fetch(topics=ann.named((0, ())) + unknown)

        assert response.error_code is ErrorCode.unknown_server_error
        assert [(0, 9, 1)] == acquired(await bob.fetch())


async def test_session_with_deleted_topic_can_be_closed():
    async with group_of() as group:
        ann = group.member("ann")
        await ann.fetch()
        group.kafka.delete_topic(TOPIC)
        lost = await ann.fetch(topics=())
        ann.epoch = -1
        closed = await ann.fetch(topics=())

    assert lost.error_code is ErrorCode.unknown_server_error
    assert closed.error_code is ErrorCode.none


async def test_unknown_partition_has_its_own_error():
    async with group_of() as group:
        group.produce()
        response = await group.member("ann").fetch(0, 7)

    by_partition = {part.partition_index: part.error_code for part in parts(response)}
    assert {
        0: ErrorCode.none,
        7: ErrorCode.unknown_topic_or_partition,
    } == by_partition


async def test_uninitialised_share_partition_is_a_server_error():
    async with group_of(subscribed=False) as group:
        response = await group.member("ann").fetch()

    assert [ErrorCode.unknown_server_error] == codes(response)


@pytest.mark.parametrize("resource", ["GROUP", "TOPIC"])
async def test_denied_client_gets_errors(resource):
    async with group_of() as group:
        group.produce()
        group.denied(resource, "g" if resource == "GROUP" else TOPIC)
        ann = group.member("ann")
        fetched = await ann.fetch()

    if resource == "GROUP":
        assert fetched.error_code is ErrorCode.group_authorization_failed
    else:
        assert [ErrorCode.topic_authorization_failed] == codes(fetched)
        assert [] == acquired(fetched)


async def test_another_broker_returns_the_leader():
    async with group_of(brokers=2) as group:
        group.kafka.move_leader(TOPIC, 0, 2)
        response = await group.member("ann", node=1).fetch()
        address = group.kafka.cluster.brokers[2]

    (part,) = parts(response)
    assert part.error_code is ErrorCode.not_leader_or_follower
    assert 2 == part.current_leader.leader_id
    assert [(2, address.port)] == [(n.node_id, n.port) for n in response.node_endpoints]


async def test_leader_move_loses_locks_but_not_deliveries():
    async with group_of(brokers=2) as group:
        group.kafka.move_leader(TOPIC, 0, 1)
        group.produce(10)
        ann = group.member("ann", node=1)
        await ann.fetch()
        await ann.acknowledge((0, 4, RELEASE))
        group.kafka.move_leader(TOPIC, 0, 2)
        late = await ann.acknowledge((5, 9, ACCEPT))
        response = await group.member("bob", node=2).fetch()

    assert [ErrorCode.unknown_topic_or_partition] == codes(late)
    assert [(0, 4, 2), (5, 9, 1)] == acquired(response)


async def test_group_starts_by_auto_offset_reset():
    async with group_of(auto_offset_reset="latest") as group:
        group.produce()
        ann = group.member("ann")
        assert [] == acquired(await ann.fetch())
        group.produce(3)

        assert [(10, 12, 1)] == acquired(await ann.fetch())


async def test_group_can_start_by_duration():
    async with group_of(auto_offset_reset="by_duration:PT1H") as group:
        group.produce(timestamp=1)
        group.produce(5)

        assert [(10, 14, 1)] == acquired(await group.member("ann").fetch())


async def test_deleted_records_are_skipped():
    async with group_of() as group:
        group.produce(30, batch=10)
        ann = group.member("ann")
        await ann.fetch(max_records=5)
        log = group.kafka.cluster.topics.by_name(TOPIC).partition(0).log
        log.truncate_before(20)

        assert [] == acquired(await ann.fetch())  # only the start offset moves
        assert [(20, 29, 1)] == acquired(await ann.fetch())
