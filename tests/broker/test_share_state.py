"""The share coordinator's state, and the requests that read it."""

import anyio
import pytest
from kio.schema.errors import ErrorCode

from tests.broker.messages import base64_id, make_request
from tests.broker.share_members import (
    ACCEPT,
    REJECT,
    RELEASE,
    acquired,
    group_of,
)

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True


async def read_state(member, leader_epoch=0, **values):
    partition = {"partition": 0, "leader_epoch": leader_epoch}
    topics = ({"topic_id": member.group.topic_id, "partitions": (partition,)},)
    request = make_request(
        "read_share_group_state", 0, group_id="g", topics=topics, **values
    )
    response = await member.client.request(request)
    return response.results[0].partitions[0]


async def test_coordinator_returns_written_state():
    async with group_of() as group:
        group.produce(100)
        ann = group.member("ann")
        await ann.fetch()
        await ann.acknowledge((0, 9, ACCEPT), (10, 14, RELEASE), (15, 19, REJECT))
        state = await read_state(ann)

    assert [(0, 9, 2, 1), (10, 14, 0, 1), (15, 19, 4, 1)] == [
        (b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
        for b in state.state_batches
    ]
    assert (0, 0) == (state.start_offset, state.state_epoch)


async def test_coordinator_state_includes_expired_locks():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()
        await anyio.sleep(31.0)
        state = await read_state(ann)

    assert [(0, 9, 0)] == [
        (b.first_offset, b.last_offset, b.delivery_state) for b in state.state_batches
    ]


async def test_coordinator_fences_older_leaders():
    async with group_of() as group:
        ann = group.member("ann")
        newer = await read_state(ann, leader_epoch=3)
        older = await read_state(ann, leader_epoch=2)

    assert (ErrorCode.none, -1) == (newer.error_code, newer.start_offset)
    assert older.error_code is ErrorCode.fenced_leader_epoch


async def test_other_broker_is_not_the_coordinator():
    async with group_of(brokers=2) as group:
        cluster = group.kafka.cluster
        key = f"g:{base64_id(group.topic_id)}:0"
        right = cluster.coordinators.node_for(2, key, cluster.running)
        state = await read_state(group.member("ann", node=3 - right))

    assert state.error_code is ErrorCode.not_coordinator


async def test_offsets_can_be_altered_and_deleted():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()
        await ann.acknowledge((0, 3, ACCEPT))
        (reported,) = group.partitions.offsets("g")
        await ann.close()
        group.partitions.reset_offset("g", group.topic_id, 0, 7)
        ann.epoch = 0

        assert (0, 6) == (reported.start_offset, reported.lag(10))
        assert [(7, 9, 1)] == acquired(await ann.fetch())
        assert 1 == (await read_state(ann)).state_epoch
        group.partitions.delete("g", group.topic_id, 0)
        assert [] == group.partitions.offsets("g")
