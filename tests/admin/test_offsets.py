"""Offsets and states of share groups: reading, setting, deleting; on both Kafkas."""

import pytest

from sharecons import TopicPartition
from sharecons.admin import DeliveryState, OffsetSpec
from sharecons.errors import ConfigurationError
from tests.admin.acquired import acquired, code_of

pytestmark = pytest.mark.anyio

FAR = 4_000_000_000.0  # seconds since 1970: the year 2096


def acknowledge_some(records):
    """Accept, release or reject records; leave offsets 20 to 29 unacknowledged."""
    for record in records:
        if record.offset < 10 or 30 <= record.offset < 40:
            record.accept()
        elif record.offset < 15:
            record.release()
        elif record.offset < 20:
            record.reject()


async def test_start_offset_and_lag_follow_accepted_records(admin, kafka, group):
    topic = kafka.admin.create_topic(2)
    kafka.admin.produce(topic, ["a"] * 100, partition=0)
    here = TopicPartition(topic, 0)
    async with acquired(kafka, group, topic, 100) as (consumer, records):
        for record in records[:10] + records[30:40]:
            record.accept()
        await consumer.commit()
        listed = (await admin.list_share_group_offsets(group))[group].value

    assert 80 == listed[here].value.lag
    assert 0 <= listed[here].value.start_offset <= 10
    assert listed[TopicPartition(topic, 1)].value.start_offset is None


async def test_read_state_returns_batches_and_fences_no_leader(admin, kafka, group):
    topic = kafka.admin.create_topic(2)
    kafka.admin.produce(topic, ["a"] * 100, partition=0)
    here, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with acquired(kafka, group, topic, 100) as (consumer, records):
        acknowledge_some(records[1:])
        await consumer.commit()
        for _ in range(3):
            state = await admin.read_state(group)
        summary = await admin.read_state_summary(group, [here])
        # The leader still writes, so it was not fenced.
        records[0].accept()
        (result,) = await consumer.commit()
        after = await admin.read_state_summary(group, [here])

    batches = [
        (each.first_offset, each.last_offset, each.state, each.delivery_count)
        for each in state[here].value.batches
    ]
    acknowledged, available, archived = (
        DeliveryState.ACKNOWLEDGED,
        DeliveryState.AVAILABLE,
        DeliveryState.ARCHIVED,
    )
    assert [
        (1, 9, acknowledged, 1),
        (10, 14, available, 1),
        (15, 19, archived, 1),
        (30, 39, acknowledged, 1),
    ] == [batch for batch in batches if batch[0] > 0]
    assert (None, ()) == (state[other].value.start_offset, state[other].value.batches)
    assert 24 == summary[here].value.delivery_complete_count
    assert result.error is None
    assert 25 == after[here].value.delivery_complete_count
    assert summary[here].value.leader_epoch == after[here].value.leader_epoch


async def test_read_state_of_unknown_partitions_returns_their_errors(
    admin, kafka, group
):
    topic = kafka.admin.create_topic()
    here = TopicPartition(topic, 0)
    (await admin.alter_share_group_offsets(group, {here: 4})).check()
    there, nowhere = TopicPartition(topic, 1), TopicPartition("no-such-topic", 0)

    state = await admin.read_state(group, [here, there, nowhere])
    stranger = await admin.read_state("unknown", [here])

    assert 4 == state[here].value.start_offset
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(state[there])
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(state[nowhere])
    assert stranger[here].value.start_offset is None


async def test_offsets_are_set_partition_by_partition(admin, kafka, group):
    topic = kafka.admin.create_topic(3)
    kafka.admin.produce(topic, ["a"] * 10, partition=0)
    kafka.admin.produce(topic, ["a"] * 10, partition=1)
    first, second, third, none = (TopicPartition(topic, n) for n in (0, 1, 2, 9))

    altered = await admin.alter_share_group_offsets(
        group,
        {first: 5, second: OffsetSpec.LATEST, third: OffsetSpec.EARLIEST, none: 1},
    )
    listed = (await admin.list_share_group_offsets(group))[group].value

    assert {first: 5, second: 10, third: 0} == altered.found
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(altered[none])
    assert {first: (5, 5), second: (10, 0), third: (0, 0)} == {
        key: (offset.start_offset, offset.lag) for key, offset in listed.found.items()
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [(OffsetSpec.at(0), 0), (OffsetSpec.at(FAR), 10), (OffsetSpec.LATEST, 10)],
    ids=["a time before", "a time after", "latest"],
)
async def test_offset_by_time_is_the_first_record_since_then(
    admin, kafka, group, spec, expected
):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, ["a"] * 10)
    here = TopicPartition(topic, 0)

    altered = await admin.alter_share_group_offsets(group, {here: spec})

    assert {here: expected} == altered.found


async def test_a_group_with_members_keeps_its_offsets(admin, kafka, group):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, ["a"] * 3)
    here = TopicPartition(topic, 0)
    async with acquired(kafka, group, topic, 3):
        altered = await admin.alter_share_group_offsets(group, {here: 1})
        deleted = await admin.delete_share_group_offsets(group, [topic])

    assert "NON_EMPTY_GROUP" == code_of(altered[here])
    assert altered[here].error is altered.common_error
    assert "NON_EMPTY_GROUP" == code_of(deleted[topic])


async def test_delete_offsets_deletes_whole_topics(admin, kafka, group):
    one, other = kafka.admin.create_topic(), kafka.admin.create_topic()
    await admin.alter_share_group_offsets(
        group, {TopicPartition(one, 0): 0, TopicPartition(other, 0): 0}
    )

    deleted = await admin.delete_share_group_offsets(group, [one, "no-such-topic"])
    left = (await admin.list_share_group_offsets(group))[group].value

    assert deleted[one].ok
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(deleted["no-such-topic"])
    assert [TopicPartition(other, 0)] == list(left)


async def test_list_offsets_of_named_and_unknown_partitions(admin, kafka, group):
    topic = kafka.admin.create_topic()
    here, there = TopicPartition(topic, 0), TopicPartition(topic, 7)
    nowhere = TopicPartition("no-such-topic", 0)
    (await admin.alter_share_group_offsets(group, {here: 3})).check()

    listed = await admin.list_share_group_offsets(
        group, "unknown", partitions=[there, here, nowhere]
    )

    found = listed[group].value
    assert [there, here, nowhere] == list(found)
    assert 3 == found[here].value.start_offset
    assert "partitions 0 to 0" in str(found[there].error)
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(found[nowhere])
    assert "GROUP_ID_NOT_FOUND" == code_of(listed["unknown"])


@pytest.mark.parametrize("offset", [-1, 1.5, True, "earliest"])
async def test_invalid_offset_is_rejected_before_sending(admin, group, offset):
    with pytest.raises(ConfigurationError, match="t-0: an offset is an integer"):
        await admin.alter_share_group_offsets(group, {TopicPartition("t", 0): offset})


async def test_list_offsets_earliest_latest_and_by_time(admin, kafka):
    topic = kafka.admin.create_topic(2)
    kafka.admin.produce(topic, ["a"] * 10, partition=0)
    here, empty, none = (TopicPartition(topic, n) for n in (0, 1, 5))

    latest = await admin.list_offsets([here, empty, none])
    mixed = await admin.list_offsets(
        {here: OffsetSpec.EARLIEST, empty: OffsetSpec.MAX_TIMESTAMP}
    )

    assert (10, 0) == (latest[here].value.offset, latest[empty].value.offset)
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(latest[none])
    assert 0 == mixed[here].value.offset
    assert mixed[empty].value.offset is None


async def test_delete_records_deletes_before_an_offset_of_each_partition(admin, kafka):
    topic = kafka.admin.create_topic(3)
    for partition in (0, 1):
        kafka.admin.produce(topic, ["a"] * 10, partition=partition)
    here, other, empty, none = (TopicPartition(topic, n) for n in (0, 1, 2, 9))

    deleted = await admin.delete_records({here: 4, other: 11, empty: 0, none: 1})
    again = await admin.delete_records({here: 4})
    earliest = await admin.list_offsets([here, other], OffsetSpec.EARLIEST)

    assert {here: 4, empty: 0} == deleted.found
    assert "OFFSET_OUT_OF_RANGE" == code_of(deleted[other])
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(deleted[none])
    assert {here: 4} == again.found
    assert [4, 0] == [earliest[key].value.offset for key in (here, other)]


async def test_records_of_a_compacted_topic_are_not_deleted(admin, kafka):
    topic = kafka.admin.create_topic(config={"cleanup.policy": "compact"})
    kafka.admin.produce(topic, ["a"], keys=["k"])

    deleted = await admin.delete_records({TopicPartition(topic, 0): 1})

    assert "POLICY_VIOLATION" == code_of(deleted[TopicPartition(topic, 0)])


@pytest.mark.parametrize("offset", [-1, True, "end", OffsetSpec.LATEST])
async def test_invalid_offset_to_delete_before_is_rejected(admin, offset):
    with pytest.raises(ConfigurationError, match="t-0: an offset is an integer"):
        await admin.delete_records({TopicPartition("t", 0): offset})
