"""Responses of the admin client's APIs, encoded by kio, also damaged."""

from datetime import timedelta
from struct import pack
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons._record import TopicPartition
from sharecons.errors import ProtocolError
from sharecons.protocol.admin import requests
from sharecons.protocol.admin.models import (
    Broker,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConsumerGroup,
    ConsumerGroupMember,
    CreatedTopic,
    DeliveryState,
    FeatureRange,
    Features,
    GroupOffset,
    ListedGroup,
    LogOffset,
    ShareGroup,
    ShareGroupMember,
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
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.produce.messages import (
    AppendResult,
    InitProducerId,
    InitProducerIdResponse,
    Produce,
    ProduceResponse,
    ProducerIdentity,
)
from sharecons.wire import consumer_protocol
from sharecons.wire.codec.registry import API_LOCATIONS, api_of
from tests.wire.oracle import encode_entity, from_hex, schema

NOW = {"throttle_time": timedelta(0)}
GOOD = {"error_code": ErrorCode.none, "error_message": None}
BAD = {"error_code": ErrorCode.coordinator_not_available, "error_message": "later"}
CODE = {"error_code": ErrorCode.none}
UUID_ = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
HERE = TopicPartition("t", 1)
SHARE_PARTITION = SharePartition(UUID_.bytes, 1)


def ok_reply(value):
    return Reply(0, None, value)


def list_groups(version):
    v = schema("list_groups", version).response
    group = v.ListedGroup(
        group_id="g", protocol_type="share", group_state="Empty", group_type="Share"
    )
    listed = ListedGroup(
        group_id="g", state="Empty", group_type="share", protocol="share"
    )
    return v.ListGroupsResponse(**NOW, **CODE, groups=(group,)), ok_reply((listed,))


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
            ShareGroupMember(
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
    response = v.ShareGroupDescribeResponse(**NOW, groups=(group,))
    return response, {"g": ok_reply(expected)}


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
    response = v.ConsumerGroupDescribeResponse(**NOW, groups=(group,))
    return response, {"g": ok_reply(expected)}


def consumer_group(group_type, assignor):
    return ConsumerGroup(
        group_id="g",
        group_type=group_type,
        state="Stable",
        assignor=assignor,
        members=(
            ConsumerGroupMember(
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
    response = v.DescribeGroupsResponse(**NOW, groups=(group,))
    return response, {"g": ok_reply(consumer_group("classic", "range"))}


def delete_groups(version):
    v = schema("delete_groups", version).response
    result = v.DeletableGroupResult(group_id="g", error_code=ErrorCode.non_empty_group)
    return v.DeleteGroupsResponse(**NOW, results=(result,)), {
        "g": Reply(68, None, None)
    }


def create_topics(version):
    v = schema("create_topics", version).response
    kind = v.CreatableTopicResult
    results = (
        kind(name="t", topic_id=UUID_, **BAD, num_partitions=1, configs=()),
        kind(
            name="u",
            topic_id=UUID_,
            **GOOD,
            num_partitions=3,
            replication_factor=2,
            configs=(),
        ),
        kind(name="w", topic_id=UUID_, **GOOD, configs=()),
    )
    expected = {
        "t": Reply(15, "later", None),
        "u": ok_reply(
            CreatedTopic(topic_id=UUID_.bytes, partitions=3, replication_factor=2)
        ),
        "w": ok_reply(
            CreatedTopic(topic_id=UUID_.bytes, partitions=None, replication_factor=None)
        ),
    }
    return v.CreateTopicsResponse(**NOW, topics=results), expected


def delete_topics(version):
    v = schema("delete_topics", version).response
    results = (
        v.DeletableTopicResult(name="t", topic_id=UUID_, **BAD),
        v.DeletableTopicResult(name="u", topic_id=UUID_, **GOOD),
    )
    response = v.DeleteTopicsResponse(**NOW, responses=results)
    return response, {"t": Reply(15, "later", None), "u": ok_reply(None)}


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
    offset = GroupOffset(
        start_offset=5, leader_epoch=2, lag=7 if version else requests.UNKNOWN_LAG
    )
    expected = {
        HERE: ok_reply(offset),
        TopicPartition("t", 2): Reply(15, "later", untold),
    }
    response = v.DescribeShareGroupOffsetsResponse(**NOW, groups=(group,))
    return response, {"g": ok_reply(expected)}


def alter_share_group_offsets(version):
    v = schema("alter_share_group_offsets", version).response
    partition = v.AlterShareGroupOffsetsResponsePartition(partition_index=1, **BAD)
    topic = v.AlterShareGroupOffsetsResponseTopic(
        topic_name="t", topic_id=UUID_, partitions=(partition,)
    )
    response = v.AlterShareGroupOffsetsResponse(**NOW, **GOOD, responses=(topic,))
    return response, ok_reply({HERE: Reply(15, "later", None)})


def delete_share_group_offsets(version):
    v = schema("delete_share_group_offsets", version).response
    topic = v.DeleteShareGroupOffsetsResponseTopic(
        topic_name="t", topic_id=UUID_, **BAD
    )
    response = v.DeleteShareGroupOffsetsResponse(**NOW, **GOOD, responses=(topic,))
    return response, ok_reply({"t": Reply(15, "later", None)})


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
    response = v.ReadShareGroupStateResponse(results=(result,))
    return response, {SHARE_PARTITION: ok_reply(expected)}


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
    response = v.ReadShareGroupStateSummaryResponse(results=(result,))
    return response, {SHARE_PARTITION: ok_reply(expected)}


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
    response = v.DescribeConfigsResponse(**NOW, results=(result,))
    return response, {Resource(ResourceKind.GROUP, "g"): ok_reply({"n": entry})}


def incremental_alter_configs(version):
    v = schema("incremental_alter_configs", version).response
    resource = v.AlterConfigsResourceResponse(
        **BAD, resource_type=32, resource_name="g"
    )
    response = v.IncrementalAlterConfigsResponse(**NOW, responses=(resource,))
    return response, Reply(15, "later", None)


def delete_records(version):
    v = schema("delete_records", version).response
    partition = v.DeleteRecordsPartitionResult(
        partition_index=1, low_watermark=9, **CODE
    )
    topic = v.DeleteRecordsTopicResult(name="t", partitions=(partition,))
    return v.DeleteRecordsResponse(**NOW, topics=(topic,)), {HERE: ok_reply(9)}


def list_offsets(version):
    v = schema("list_offsets", version).response
    partition = v.ListOffsetsPartitionResponse(
        partition_index=1, **CODE, timestamp=-1, offset=9, leader_epoch=0
    )
    topic = v.ListOffsetsTopicResponse(name="t", partitions=(partition,))
    expected = LogOffset(offset=9, timestamp=None, leader_epoch=0)
    return v.ListOffsetsResponse(**NOW, topics=(topic,)), {HERE: ok_reply(expected)}


def produce(version):
    v = schema("produce", version).response
    why = v.BatchIndexAndErrorMessage(
        batch_index=0, batch_index_error_message="too old"
    )
    kind = v.PartitionProduceResponse
    offsets = {"log_append_time": None, "log_start_offset": 0}
    partitions = (
        kind(index=1, base_offset=7, record_errors=(), **offsets, **GOOD),
        kind(index=2, base_offset=-1, record_errors=(why,), **offsets, **BAD),
    )
    topic = v.TopicProduceResponse(name="t", partition_responses=partitions)
    response = v.ProduceResponse(responses=(topic,), throttle_time=timedelta(seconds=2))
    expected = {
        HERE: AppendResult(0, None, 7),
        TopicPartition("t", 2): AppendResult(15, "later", -1),
    }
    return response, ProduceResponse(partitions=expected, throttle=2.0)


def init_producer_id(version):
    v = schema("init_producer_id", version).response
    response = v.InitProducerIdResponse(
        **NOW, **CODE, producer_id=1000, producer_epoch=3
    )
    identity = ProducerIdentity(1000, 3)
    return response, InitProducerIdResponse(error=0, identity=identity)


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
    expected = {HERE: ok_reply(committed), TopicPartition("t", 2): ok_reply(None)}
    return v.OffsetFetchResponse(**NOW, groups=(group,)), {"g": ok_reply(expected)}


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
    response = v.FindCoordinatorResponse(**NOW, coordinators=(found,))
    return response, {"k": ok_reply(expected)}


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
    response = v.MetadataResponse(
        **NOW, **more, brokers=(broker,), cluster_id="c", topics=(topic,)
    )
    place = TopicPartitionInfo(
        leader=None, leader_epoch=4, replicas=(1, 2), in_sync=(1,)
    )
    expected = Topic(
        name="t", topic_id=UUID_.bytes, internal=True, partitions={0: place}
    )
    brokers = {1: Broker(node_id=1, host="h", port=9, rack="r")}
    return response, TopicMetadata(
        brokers=brokers, topics={"t": ok_reply(expected)}, cluster_id="c"
    )


def describe_cluster(version):
    v = schema("describe_cluster", version).response
    fenced = {"is_fenced": True} if version >= 2 else {}
    broker = v.DescribeClusterBroker(broker_id=1, host="h", port=9, rack=None, **fenced)
    response = v.DescribeClusterResponse(
        **NOW, **GOOD, cluster_id="c", controller_id=1, brokers=(broker,)
    )
    expected = ClusterDescription(
        cluster_id="c",
        controller_id=1,
        brokers={1: Broker(node_id=1, host="h", port=9, fenced=version >= 2)},
    )
    return response, ok_reply(expected)


RESPONSES = [
    (requests.ListGroups, list_groups),
    (requests.DescribeShareGroups, share_group_describe),
    (requests.DescribeConsumerGroups, consumer_group_describe),
    (requests.DescribeClassicGroups, describe_groups),
    (requests.DeleteGroups, delete_groups),
    (requests.CreateTopics, create_topics),
    (requests.DeleteTopics, delete_topics),
    (requests.ListShareGroupOffsets, describe_share_group_offsets),
    (requests.AlterShareGroupOffsets, alter_share_group_offsets),
    (requests.DeleteShareGroupOffsets, delete_share_group_offsets),
    (requests.ReadState, read_share_group_state),
    (requests.ReadStateSummary, read_share_group_state_summary),
    (requests.DescribeConfigs, describe_configs),
    (requests.AlterConfigs, incremental_alter_configs),
    (requests.ListOffsets, list_offsets),
    (requests.DeleteRecords, delete_records),
    (Produce, produce),
    (InitProducerId, init_producer_id),
    (requests.ListConsumerGroupOffsets, offset_fetch),
    (requests.AlterConsumerGroupOffsets, offset_commit),
    (requests.FindCoordinators, find_coordinator),
    (requests.TopicMetadataRequest, metadata),
    (requests.DescribeCluster, describe_cluster),
]
every_response = pytest.mark.parametrize(
    ("api", "version", "make"),
    [
        pytest.param(api_of(kind), version, make, id=f"{make.__name__}-{version}")
        for kind, make in RESPONSES
        for version in api_of(kind).versions
    ],
)


@every_response
def test_response_encoded_by_kio_is_decoded(api, version, make):
    response, expected = make(version)

    assert expected == api.read(encode_entity(response), 0, version)


@every_response
def test_truncated_response_or_extra_byte_is_rejected(api, version, make):
    data = encode_entity(make(version)[0])

    for wrong in [*(data[:length] for length in range(len(data))), data + b"\0"]:
        with pytest.raises(ProtocolError):
            api.read(wrong, 0, version)


@every_response
def test_response_with_a_changed_byte_is_decoded_or_rejected(api, version, make):
    data = encode_entity(make(version)[0])

    for position in range(len(data)):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            changed = data[:position] + bytes((byte,)) + data[position + 1 :]
            _read_or_protocol_error(api, version, changed)


@every_response
@given(data=st.binary(max_size=120))
def test_random_bytes(api, version, make, data):
    _read_or_protocol_error(api, version, data)


def _read_or_protocol_error(api, version, data):
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
    63 01 ff              one that unknown
"""


def features():
    return from_hex(FEATURES.replace("00 0f", "00 10").replace("02 0f", "02 10"))


def test_features_are_decoded_from_tagged_fields():
    share = {"share.ver": FeatureRange(lowest=0, highest=1)}
    on = {"share.ver": FeatureRange(lowest=1, highest=1)}
    expected = Features(
        finalized=on, supported=share, apis={78: FeatureRange(lowest=1, highest=2)}
    )

    assert ok_reply(expected) == api_of(requests.DescribeFeatures).read(
        features(), 0, 4
    )


def test_truncated_features_are_rejected():
    data = features()

    for length in range(len(data) - 1):
        with pytest.raises(ProtocolError):
            api_of(requests.DescribeFeatures).read(data[:length], 0, 4)


def test_features_response_with_an_error():
    read = api_of(requests.DescribeFeatures).read(from_hex("0023 01 00000000 00"), 0, 4)

    assert Reply(35, None, None) == read


@pytest.mark.parametrize(("number", "name"), [(3, "ARCHIVING"), (99, "UNKNOWN_99")])
def test_unknown_delivery_state_is_decoded(number, name):
    response, _ = read_share_group_state(0)
    data = encode_entity(response).replace(
        from_hex("0000000000000009 04"), from_hex("0000000000000009") + bytes([number])
    )
    reply = api_of(requests.ReadState).read(data, 0, 0)[SHARE_PARTITION]
    (batch,) = reply.value.batches

    assert (number, name) == (batch.state, batch.state.name)


def test_unknown_resource_type_is_decoded():
    response, _ = describe_configs(4)
    data = encode_entity(response)
    newer = data.replace(
        bytes([32]) + from_hex("02 67"), bytes([99]) + from_hex("02 67")
    )
    assert newer != data
    (resource,) = api_of(requests.DescribeConfigs).read(newer, 0, 4)

    assert (99, "UNKNOWN_99") == (resource.kind, resource.kind.name)


def test_dead_group_is_not_found():
    v = schema("describe_groups", 5).response
    group = v.DescribedGroup(
        **CODE,
        group_id="g",
        group_state="Dead",
        protocol_type="",
        protocol_data="",
        members=(),
    )
    data = encode_entity(v.DescribeGroupsResponse(**NOW, groups=(group,)))

    assert 69 == api_of(requests.DescribeClassicGroups).read(data, 0, 5)["g"].code


@pytest.mark.parametrize("data", [SUBSCRIPTION, ASSIGNMENT, b"", b"\0", b"\xff" * 40])
def test_truncated_member_metadata_is_empty(data):
    for length in range(len(data)):
        cut = data[:length]

        assert consumer_protocol.read_subscription(cut) in ((), ("t",))
        assert consumer_protocol.read_assignment(cut) in ((), (HERE,))


def test_every_request_has_an_api():
    kinds = [
        getattr(requests, name) for name in requests.__all__ if name in API_LOCATIONS
    ]

    assert 22 == len(kinds)
    assert [] == [kind for kind in kinds if not callable(api_of(kind).read)]
