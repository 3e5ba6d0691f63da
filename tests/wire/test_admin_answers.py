"""Answers to administration: kio writes them, damage is a ProtocolError."""

from datetime import timedelta
from struct import pack
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons._record import TopicPartition
from sharecons.errors import ProtocolError
from sharecons.protocol.admin import requests as asking
from sharecons.protocol.admin.models import (
    Broker,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConsumerGroup,
    ConsumerMember,
    DeliveryState,
    FeatureRange,
    Features,
    GroupOffset,
    ListedGroup,
    LogOffset,
    ShareGroup,
    ShareMember,
    SharePartitionState,
    StateBatch,
    StateSummary,
    Topic,
    TopicPartitionInfo,
)
from sharecons.protocol.admin.requests import (
    Reply,
    Resource,
    ResourceKind,
    TopicMetadata,
)
from sharecons.protocol.messages import SharePartition
from sharecons.wire import consumer_protocol
from sharecons.wire.codec.registry import API_LOCATIONS, api_of
from tests.wire.oracle import schema, spelt, written

NOW = {"throttle_time": timedelta(0)}
GOOD = {"error_code": ErrorCode.none, "error_message": None}
BAD = {"error_code": ErrorCode.coordinator_not_available, "error_message": "later"}
CODE = {"error_code": ErrorCode.none}
UUID_ = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
HERE = TopicPartition("t", 1)
SHARE_PARTITION = SharePartition(UUID_.bytes, 1)


def well(value):
    return Reply(0, None, value)


def list_groups(version):
    v = schema("list_groups", version).response
    group = v.ListedGroup(
        group_id="g", protocol_type="share", group_state="Empty", group_type="Share"
    )
    listed = ListedGroup(
        group_id="g", state="Empty", group_type="share", protocol="share"
    )
    return v.ListGroupsResponse(**NOW, **CODE, groups=(group,)), well((listed,))


def share_group_describe(version):
    v = schema("share_group_describe", version).response
    topic = v.TopicPartitions(topic_id=UUID_, topic_name="t", partitions=(1,))
    member = v.Member(
        member_id="m",
        rack_id="r",
        member_epoch=3,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("t",),
        assignment=v.Assignment(topic_partitions=(topic,)),
    )
    group = v.DescribedGroup(
        **GOOD,
        group_id="g",
        group_state="Stable",
        group_epoch=3,
        assignment_epoch=2,
        assignor_name="simple",
        members=(member,),
        authorized_operations=1 << 3 | 1 << 8,
    )
    expected = ShareGroup(
        group_id="g",
        state="Stable",
        group_epoch=3,
        assignment_epoch=2,
        assignor="simple",
        members=(
            ShareMember(
                member_id="m",
                member_epoch=3,
                client_id="c",
                client_host="/h",
                rack="r",
                subscription=("t",),
                assignment=(HERE,),
            ),
        ),
        authorized_operations=frozenset({"READ", "DESCRIBE"}),
    )
    answer = v.ShareGroupDescribeResponse(**NOW, groups=(group,))
    return answer, {"g": well(expected)}


def consumer_group_describe(version):
    v = schema("consumer_group_describe", version).response
    topic = v.TopicPartitions(topic_id=UUID_, topic_name="t", partitions=(1,))
    assignment = v.Assignment(topic_partitions=(topic,))
    member = v.Member(
        member_id="m",
        instance_id="i",
        member_epoch=3,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("t",),
        assignment=assignment,
        target_assignment=assignment,
    )
    group = v.DescribedGroup(
        **GOOD,
        group_id="g",
        group_state="Stable",
        group_epoch=3,
        assignment_epoch=2,
        assignor_name="uniform",
        members=(member,),
    )
    expected = consumer_group("consumer", "uniform")
    answer = v.ConsumerGroupDescribeResponse(**NOW, groups=(group,))
    return answer, {"g": well(expected)}


def consumer_group(group_type, assignor):
    return ConsumerGroup(
        group_id="g",
        group_type=group_type,
        state="Stable",
        assignor=assignor,
        members=(
            ConsumerMember(
                member_id="m",
                instance_id="i",
                client_id="c",
                client_host="/h",
                subscription=("t",),
                assignment=(HERE,),
            ),
        ),
    )


SUBSCRIPTION = pack(">hih1si", 1, 1, 1, b"t", -1)
ASSIGNMENT = pack(">hih1siii", 1, 1, 1, b"t", 1, 1, -1)


def describe_groups(version):
    v = schema("describe_groups", version).response
    member = v.DescribedGroupMember(
        member_id="m",
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        member_metadata=SUBSCRIPTION,
        member_assignment=ASSIGNMENT,
    )
    more = {"error_message": None} if version >= 6 else {}
    group = v.DescribedGroup(
        **CODE,
        **more,
        group_id="g",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=(member,),
    )
    answer = v.DescribeGroupsResponse(**NOW, groups=(group,))
    return answer, {"g": well(consumer_group("classic", "range"))}


def delete_groups(version):
    v = schema("delete_groups", version).response
    result = v.DeletableGroupResult(group_id="g", error_code=ErrorCode.non_empty_group)
    return v.DeleteGroupsResponse(**NOW, results=(result,)), {
        "g": Reply(68, None, None)
    }


def describe_share_group_offsets(version):
    v = schema("describe_share_group_offsets", version).response
    kind = v.DescribeShareGroupOffsetsResponsePartition
    lag = {"lag": 7} if version else {}
    partitions = (
        kind(partition_index=1, start_offset=5, leader_epoch=2, **GOOD, **lag),
        kind(partition_index=2, start_offset=-1, leader_epoch=0, **BAD),
    )
    topic = v.DescribeShareGroupOffsetsResponseTopic(
        topic_name="t", topic_id=UUID_, partitions=partitions
    )
    group = v.DescribeShareGroupOffsetsResponseGroup(
        group_id="g", topics=(topic,), **GOOD
    )
    untold = GroupOffset(start_offset=None, leader_epoch=None, lag=None)
    told = GroupOffset(
        start_offset=5, leader_epoch=2, lag=7 if version else asking.UNKNOWN_LAG
    )
    expected = {HERE: well(told), TopicPartition("t", 2): Reply(15, "later", untold)}
    answer = v.DescribeShareGroupOffsetsResponse(**NOW, groups=(group,))
    return answer, {"g": well(expected)}


def alter_share_group_offsets(version):
    v = schema("alter_share_group_offsets", version).response
    partition = v.AlterShareGroupOffsetsResponsePartition(partition_index=1, **BAD)
    topic = v.AlterShareGroupOffsetsResponseTopic(
        topic_name="t", topic_id=UUID_, partitions=(partition,)
    )
    answer = v.AlterShareGroupOffsetsResponse(**NOW, **GOOD, responses=(topic,))
    return answer, well({HERE: Reply(15, "later", None)})


def delete_share_group_offsets(version):
    v = schema("delete_share_group_offsets", version).response
    topic = v.DeleteShareGroupOffsetsResponseTopic(
        topic_name="t", topic_id=UUID_, **BAD
    )
    answer = v.DeleteShareGroupOffsetsResponse(**NOW, **GOOD, responses=(topic,))
    return answer, well({"t": Reply(15, "later", None)})


def read_share_group_state(version):
    v = schema("read_share_group_state", version).response
    batch = v.StateBatch(
        first_offset=3, last_offset=9, delivery_state=4, delivery_count=2
    )
    partition = v.PartitionResult(
        partition=1, state_epoch=2, start_offset=3, state_batches=(batch,), **GOOD
    )
    result = v.ReadStateResult(topic_id=UUID_, partitions=(partition,))
    batches = (
        StateBatch(
            first_offset=3,
            last_offset=9,
            state=DeliveryState.ARCHIVED,
            delivery_count=2,
        ),
    )
    expected = SharePartitionState(start_offset=3, state_epoch=2, batches=batches)
    answer = v.ReadShareGroupStateResponse(results=(result,))
    return answer, {SHARE_PARTITION: well(expected)}


def read_share_group_state_summary(version):
    v = schema("read_share_group_state_summary", version).response
    count = {"delivery_complete_count": 6} if version else {}
    partition = v.PartitionResult(
        partition=1, state_epoch=2, leader_epoch=4, start_offset=3, **count, **GOOD
    )
    result = v.ReadStateSummaryResult(topic_id=UUID_, partitions=(partition,))
    expected = StateSummary(
        start_offset=3,
        state_epoch=2,
        leader_epoch=4,
        delivery_complete_count=6 if version else None,
    )
    answer = v.ReadShareGroupStateSummaryResponse(results=(result,))
    return answer, {SHARE_PARTITION: well(expected)}


def describe_configs(version):
    v = schema("describe_configs", version).response
    config = v.DescribeConfigsResourceResult(
        name="n",
        value="5",
        read_only=False,
        config_source=8,
        is_sensitive=False,
        synonyms=(),
        documentation="d",
    )
    result = v.DescribeConfigsResult(
        **GOOD, resource_type=32, resource_name="g", configs=(config,)
    )
    entry = ConfigEntry(
        name="n", value="5", source="DYNAMIC_GROUP_CONFIG", documentation="d"
    )
    answer = v.DescribeConfigsResponse(**NOW, results=(result,))
    return answer, {Resource(ResourceKind.GROUP, "g"): well({"n": entry})}


def incremental_alter_configs(version):
    v = schema("incremental_alter_configs", version).response
    response = v.AlterConfigsResourceResponse(
        **BAD, resource_type=32, resource_name="g"
    )
    answer = v.IncrementalAlterConfigsResponse(**NOW, responses=(response,))
    return answer, Reply(15, "later", None)


def list_offsets(version):
    v = schema("list_offsets", version).response
    partition = v.ListOffsetsPartitionResponse(
        partition_index=1, **CODE, timestamp=-1, offset=9, leader_epoch=0
    )
    topic = v.ListOffsetsTopicResponse(name="t", partitions=(partition,))
    expected = LogOffset(offset=9, timestamp=None, leader_epoch=0)
    return v.ListOffsetsResponse(**NOW, topics=(topic,)), {HERE: well(expected)}


def offset_fetch(version):
    v = schema("offset_fetch", version).response
    kind = v.OffsetFetchResponsePartitions
    partitions = (
        kind(partition_index=1, committed_offset=9, metadata="m", **CODE),
        kind(partition_index=2, committed_offset=-1, metadata="", **CODE),
    )
    topic = v.OffsetFetchResponseTopics(name="t", partitions=partitions)
    group = v.OffsetFetchResponseGroup(group_id="g", topics=(topic,), **CODE)
    committed = CommittedOffset(offset=9, metadata="m")
    expected = {HERE: well(committed), TopicPartition("t", 2): well(None)}
    return v.OffsetFetchResponse(**NOW, groups=(group,)), {"g": well(expected)}


def offset_commit(version):
    v = schema("offset_commit", version).response
    partition = v.OffsetCommitResponsePartition(
        partition_index=1, error_code=ErrorCode.unknown_member_id
    )
    topic = v.OffsetCommitResponseTopic(name="t", partitions=(partition,))
    return v.OffsetCommitResponse(**NOW, topics=(topic,)), {HERE: Reply(25, None, None)}


def find_coordinator(version):
    v = schema("find_coordinator", version).response
    found = v.Coordinator(key="k", node_id=1, host="h", port=9, **GOOD)
    expected = Broker(node_id=1, host="h", port=9)
    answer = v.FindCoordinatorResponse(**NOW, coordinators=(found,))
    return answer, {"k": well(expected)}


def metadata(version):
    v = schema("metadata", version).response
    broker = v.MetadataResponseBroker(node_id=1, host="h", port=9, rack="r")
    partition = v.MetadataResponsePartition(
        **CODE,
        partition_index=0,
        leader_id=-1,
        leader_epoch=4,
        replica_nodes=(1, 2),
        isr_nodes=(1,),
        offline_replicas=(2,),
    )
    topic = v.MetadataResponseTopic(
        **CODE, name="t", topic_id=UUID_, is_internal=True, partitions=(partition,)
    )
    more = {"error_code": ErrorCode.none} if version >= 13 else {}
    answer = v.MetadataResponse(
        **NOW, **more, brokers=(broker,), cluster_id="c", topics=(topic,)
    )
    place = TopicPartitionInfo(
        leader=None, leader_epoch=4, replicas=(1, 2), in_sync=(1,)
    )
    expected = Topic(
        name="t", topic_id=UUID_.bytes, internal=True, partitions={0: place}
    )
    brokers = {1: Broker(node_id=1, host="h", port=9, rack="r")}
    return answer, TopicMetadata(brokers=brokers, topics={"t": well(expected)})


def describe_cluster(version):
    v = schema("describe_cluster", version).response
    fenced = {"is_fenced": True} if version >= 2 else {}
    broker = v.DescribeClusterBroker(broker_id=1, host="h", port=9, rack=None, **fenced)
    answer = v.DescribeClusterResponse(
        **NOW, **GOOD, cluster_id="c", controller_id=1, brokers=(broker,)
    )
    expected = ClusterDescription(
        cluster_id="c",
        controller_id=1,
        brokers={1: Broker(node_id=1, host="h", port=9, fenced=version >= 2)},
    )
    return answer, well(expected)


SPOKEN = [
    (asking.ListGroups, list_groups),
    (asking.DescribeShareGroups, share_group_describe),
    (asking.DescribeConsumerGroups, consumer_group_describe),
    (asking.DescribeClassicGroups, describe_groups),
    (asking.DeleteGroups, delete_groups),
    (asking.ListShareGroupOffsets, describe_share_group_offsets),
    (asking.AlterShareGroupOffsets, alter_share_group_offsets),
    (asking.DeleteShareGroupOffsets, delete_share_group_offsets),
    (asking.ReadState, read_share_group_state),
    (asking.ReadStateSummary, read_share_group_state_summary),
    (asking.DescribeConfigs, describe_configs),
    (asking.AlterConfigs, incremental_alter_configs),
    (asking.ListOffsets, list_offsets),
    (asking.ListConsumerGroupOffsets, offset_fetch),
    (asking.AlterConsumerGroupOffsets, offset_commit),
    (asking.FindCoordinators, find_coordinator),
    (asking.TopicMetadataRequest, metadata),
    (asking.DescribeCluster, describe_cluster),
]
every_answer = pytest.mark.parametrize(
    ("api", "version", "make"),
    [
        pytest.param(api_of(kind), version, make, id=f"{make.__name__}-{version}")
        for kind, make in SPOKEN
        for version in api_of(kind).versions
    ],
)


@every_answer
def test_answer_that_kio_writes_is_read_as_it_was_meant(api, version, make):
    answer, expected = make(version)

    assert expected == api.read(written(answer), 0, version)


@every_answer
def test_every_truncation_and_a_byte_too_many(api, version, make):
    data = written(make(version)[0])

    for wrong in [*(data[:length] for length in range(len(data))), data + b"\0"]:
        with pytest.raises(ProtocolError):
            api.read(wrong, 0, version)


@every_answer
def test_every_byte_changed_is_read_or_refused(api, version, make):
    data = written(make(version)[0])

    for position in range(len(data)):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            changed = data[:position] + bytes((byte,)) + data[position + 1 :]
            _read_or_refuse(api, version, changed)


@every_answer
@given(data=st.binary(max_size=120))
def test_random_bytes(api, version, make, data):
    _read_or_refuse(api, version, data)


def _read_or_refuse(api, version, data):
    try:
        api.read(data, 0, version)
    except ProtocolError:
        pass


FEATURES = """
    0000                  ErrorCode
    02 004e 0001 0002 00  ApiKeys: one, 78 from 1 to 2
    00000000              ThrottleTimeMs
    04                    (four tagged fields)
    00 0f 02 0a 'share.ver' 0000 0001 00   SupportedFeatures: one
    01 08 0000000000000007  FinalizedFeaturesEpoch
    02 0f 02 0a 'share.ver' 0001 0001 00   FinalizedFeatures: one
    63 01 ff              one that nobody knows
"""


def features():
    return spelt(FEATURES.replace("00 0f", "00 10").replace("02 0f", "02 10"))


def test_features_are_read_from_tagged_fields():
    share = {"share.ver": FeatureRange(lowest=0, highest=1)}
    on = {"share.ver": FeatureRange(lowest=1, highest=1)}
    expected = Features(
        finalized=on, supported=share, apis={78: FeatureRange(lowest=1, highest=2)}
    )

    assert well(expected) == api_of(asking.DescribeFeatures).read(features(), 0, 4)


def test_features_cut_short_are_no_features():
    data = features()

    for length in range(len(data) - 1):
        with pytest.raises(ProtocolError):
            api_of(asking.DescribeFeatures).read(data[:length], 0, 4)


def test_features_that_are_refused():
    read = api_of(asking.DescribeFeatures).read(spelt("0023 01 00000000 00"), 0, 4)

    assert Reply(35, None, None) == read


@pytest.mark.parametrize(("number", "name"), [(3, "ARCHIVING"), (99, "UNKNOWN_99")])
def test_a_delivery_state_of_a_newer_broker_is_read(number, name):
    answer, _ = read_share_group_state(0)
    data = written(answer).replace(
        spelt("0000000000000009 04"), spelt("0000000000000009") + bytes([number])
    )
    reply = api_of(asking.ReadState).read(data, 0, 0)[SHARE_PARTITION]
    (batch,) = reply.value.batches

    assert (number, name) == (batch.state, batch.state.name)


def test_a_resource_type_of_a_newer_broker_is_read():
    answer, _ = describe_configs(4)
    data = written(answer)
    newer = data.replace(bytes([32]) + spelt("02 67"), bytes([99]) + spelt("02 67"))
    assert newer != data
    (resource,) = api_of(asking.DescribeConfigs).read(newer, 0, 4)

    assert (99, "UNKNOWN_99") == (resource.kind, resource.kind.name)


def test_a_dead_group_is_not_there():
    v = schema("describe_groups", 5).response
    group = v.DescribedGroup(
        **CODE,
        group_id="g",
        group_state="Dead",
        protocol_type="",
        protocol_data="",
        members=(),
    )
    data = written(v.DescribeGroupsResponse(**NOW, groups=(group,)))

    assert 69 == api_of(asking.DescribeClassicGroups).read(data, 0, 5)["g"].code


@pytest.mark.parametrize("data", [SUBSCRIPTION, ASSIGNMENT, b"", b"\0", b"\xff" * 40])
def test_opaque_bytes_cut_short_are_read_as_nothing(data):
    for length in range(len(data)):
        cut = data[:length]

        assert consumer_protocol.read_subscription(cut) in ((), ("t",))
        assert consumer_protocol.read_assignment(cut) in ((), (HERE,))


def test_every_request_has_a_home():
    kinds = [getattr(asking, name) for name in asking.__all__ if name in API_LOCATIONS]

    assert 19 == len(kinds)
    assert [] == [kind for kind in kinds if not callable(api_of(kind).read)]
