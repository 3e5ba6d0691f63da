"""Arguments of a wrong type in calls of the admin client: one sentence each.

Nothing is sent, so no broker is needed.
"""

import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.admin import CommittedOffset, OffsetSpec
from sharecons.errors import ConfigurationError

pytestmark = pytest.mark.anyio

HERE = TopicPartition("orders", 0)
INT32 = "must be between 0 and 2,147,483,647"
BAD_KEYS = [
    "orders",
    ("orders",),
    ("orders", "0"),
    ("orders", 0, 1),
    ("orders", -1),
    (b"orders", 0),
    5,
    None,
]
OFFSET_CALLS = {
    "alter_share_group_offsets": lambda a, v: a.alter_share_group_offsets("g", v),
    "alter_consumer_group_offsets": lambda a, v: a.alter_consumer_group_offsets("g", v),
    "delete_records": lambda a, v: a.delete_records(v),
    "read_log": lambda a, v: a.read_log(v),
}
PARTITION_CALLS = {
    "list_offsets": lambda a, v: a.list_offsets(v),
    "list_offsets of a mapping": lambda a, v: a.list_offsets(dict.fromkeys(v)),
    "list_share_group_offsets": lambda a, v: a.list_share_group_offsets(
        "g", partitions=v
    ),
    "list_consumer_group_offsets": lambda a, v: a.list_consumer_group_offsets(
        "g", partitions=v
    ),
    "read_state": lambda a, v: a.read_state("g", v),
}


def calls(found):
    values, names = found.values(), list(found)
    return pytest.mark.parametrize("call", values, ids=names)


async def rejection(call, value):
    with pytest.raises(ConfigurationError) as caught:
        await call(ShareGroupAdmin(bootstrap_servers="localhost:1"), value)
    return str(caught.value)


@calls(OFFSET_CALLS)
@pytest.mark.parametrize("key", BAD_KEYS, ids=repr)
async def test_wrong_key_of_offsets_is_a_sentence(call, key):
    text = await rejection(call, {HERE: 1, key: 1})

    assert f"partitions must be TopicPartition(topic, partition), not {key!r}" == text


@calls(OFFSET_CALLS)
@pytest.mark.parametrize("offsets", [[HERE], {HERE}, "orders", 5, None], ids=repr)
async def test_offsets_that_are_no_mapping_are_a_sentence(call, offsets):
    text = await rejection(call, offsets)

    assert f"offsets must be a mapping with TopicPartition keys, not {offsets!r}" == (
        text
    )


@pytest.mark.parametrize(
    "time", ["2026-11-21", None, 1_764_201_600_000, float("nan"), float("-inf")]
)
def test_time_that_is_neither_datetime_nor_seconds_is_a_sentence(time):
    with pytest.raises(ConfigurationError) as caught:
        OffsetSpec.at(time)

    text = f"time must be a datetime or seconds since 1970, not {time!r}"
    assert text == str(caught.value)


@calls(OFFSET_CALLS)
@pytest.mark.parametrize("offset", ["1", None, 1.5, -1, True, 2**63], ids=repr)
async def test_wrong_offset_is_a_sentence(call, offset):
    text = await rejection(call, {HERE: offset})

    limits = "an integer from 0 to 2**63 - 1"
    assert f"orders-0: an offset is {limits}, not {offset!r}" == text


@calls(OFFSET_CALLS)
async def test_partition_number_of_offsets_beyond_int32_is_a_sentence(call):
    text = await rejection(call, {TopicPartition("orders", 2**31): 1})

    assert f"partition of topic 'orders' {INT32}, not {2**31}" == text


@calls(PARTITION_CALLS)
async def test_partition_number_beyond_int32_is_a_sentence(call):
    text = await rejection(call, [TopicPartition("orders", 2**31)])

    assert f"partition of topic 'orders' {INT32}, not {2**31}" == text


@pytest.mark.parametrize("epoch", [2**31, -1])
async def test_leader_epoch_out_of_range_is_a_sentence(epoch):
    text = await rejection(
        OFFSET_CALLS["alter_consumer_group_offsets"],
        {HERE: CommittedOffset(offset=1, leader_epoch=epoch)},
    )

    assert f"leader_epoch of orders-0 {INT32}, not {epoch}" == text


async def test_metadata_of_an_offset_beyond_int16_is_a_sentence():
    text = await rejection(
        OFFSET_CALLS["alter_consumer_group_offsets"],
        {HERE: CommittedOffset(offset=1, metadata="m" * 40_000)},
    )

    assert text.startswith("metadata of orders-0 must be at most 32,767 bytes")


@calls(
    {
        "list_offsets": PARTITION_CALLS["list_offsets"],
        "alter_share_group_offsets": OFFSET_CALLS["alter_share_group_offsets"],
    }
)
async def test_timestamp_of_a_spec_beyond_int64_is_a_sentence(call):
    text = await rejection(call, {HERE: OffsetSpec(timestamp=2**63)})

    assert text.startswith("timestamp of the OffsetSpec of orders-0 must be between ")


@pytest.mark.parametrize("max_bytes", [0, 2**31, 1.5])
async def test_max_bytes_out_of_range_is_a_sentence(max_bytes):
    text = await rejection(lambda a, v: a.read_log({HERE: 0}, max_bytes=v), max_bytes)

    assert text.startswith("max_bytes must be ")


@calls(PARTITION_CALLS)
@pytest.mark.parametrize("key", BAD_KEYS, ids=repr)
async def test_wrong_partition_is_a_sentence(call, key):
    text = await rejection(call, [HERE, key])

    assert f"partitions must be TopicPartition(topic, partition), not {key!r}" == text


async def test_partitions_that_are_no_sequence_are_a_sentence():
    text = await rejection(PARTITION_CALLS["list_offsets"], 5)

    assert "partitions must be a sequence of TopicPartition, not 5" == text


@pytest.mark.parametrize("spec", [1, "latest", None], ids=repr)
async def test_wrong_offset_spec_is_a_sentence(spec):
    text = await rejection(lambda a, v: a.list_offsets(v), {HERE: spec})

    assert f"orders-0: spec must be an OffsetSpec, not {spec!r}" == text


@pytest.mark.parametrize("topics", [1, None, [1], "orders"], ids=repr)
async def test_wrong_topics_are_a_sentence(topics):
    text = await rejection(lambda a, v: a.delete_share_group_offsets("g", v), topics)

    assert text.startswith("topics must be a sequence of names, not ")


@pytest.mark.parametrize("changes", [1, None, ["a"], "a"], ids=repr)
async def test_changes_that_are_no_mapping_are_a_sentence(changes):
    text = await rejection(lambda a, v: a.alter_group_configs("g", v), changes)

    assert f"changes must be a mapping, not {changes!r}" == text
