"""Requests of the admin client's APIs: golden bytes, and decoding by kio."""

import pytest

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import CommittedOffset, NewTopic, OffsetSpec
from sharecons.protocol.admin.requests import (
    AlterConfigs,
    AlterConsumerGroupOffsets,
    AlterShareGroupOffsets,
    CoordinatorKind,
    CreateTopics,
    DeleteGroups,
    DeleteRecords,
    DeleteShareGroupOffsets,
    DeleteTopics,
    DescribeClassicGroups,
    DescribeCluster,
    DescribeConfigs,
    DescribeConsumerGroups,
    DescribeFeatures,
    DescribeShareGroups,
    FindCoordinators,
    ListConsumerGroupOffsets,
    ListGroups,
    ListOffsets,
    ListShareGroupOffsets,
    ReadState,
    ReadStateSummary,
    Resource,
    ResourceKind,
    TopicMetadataRequest,
)
from sharecons.protocol.messages import SharePartition
from sharecons.protocol.produce.messages import InitProducerId, Produce
from sharecons.version import VERSION
from sharecons.wire.codec.registry import api_of
from tests.wire.oracle import decode_entity, from_hex, schema

HERE = TopicPartition("t", 1)
TOPIC_ID = bytes(range(16))
SHARE_PARTITION = SharePartition(TOPIC_ID, 3)
GROUP = Resource(ResourceKind.GROUP, "g")

CASES = [
    (
        "list_groups",
        ListGroups(states=("Empty",), types=("share",)),
        [5],
        """
        02 06 'Empty'         StatesFilter: one
        02 06 'share'         TypesFilter: one
        00                    (tagged fields)
        """,
    ),
    (
        "share_group_describe",
        DescribeShareGroups(group_ids=("g",), authorized_operations=True),
        [1],
        """
        02 02 'g'             GroupIds: one
        01                    IncludeAuthorizedOperations
        00                    (tagged fields)
        """,
    ),
    (
        "consumer_group_describe",
        DescribeConsumerGroups(group_ids=("g",), authorized_operations=False),
        [0, 1],
        """
        02 02 'g' 00          GroupIds, IncludeAuthorizedOperations
        00                    (tagged fields)
        """,
    ),
    (
        "describe_groups",
        DescribeClassicGroups(group_ids=("g",), authorized_operations=True),
        [5, 6],
        """
        02 02 'g' 01          Groups, IncludeAuthorizedOperations
        00                    (tagged fields)
        """,
    ),
    (
        "delete_groups",
        DeleteGroups(group_ids=("g", "h")),
        [2],
        """
        03 02 'g' 02 'h'      GroupsNames: two
        00                    (tagged fields)
        """,
    ),
    (
        "create_topics",
        CreateTopics(
            (
                NewTopic("t", partitions=3, configs={"retention.ms": -1}),
                NewTopic("u", replication_factor=2, configs={"preallocate": True}),
            ),
            30.0,
            validate_only=True,
        ),
        [7],
        """
        03                    Topics: two
          02 't'              Name
          00000003 ffff       NumPartitions, ReplicationFactor: the default
          01                  Assignments: none
          02                  Configs: one
            0d 'retention.ms'
            03 '-1'
            00                (tagged fields)
          00                  (tagged fields)
          02 'u'              Name
          ffffffff 0002       NumPartitions: the default, ReplicationFactor
          01                  Assignments: none
          02                  Configs: one
            0c 'preallocate'
            05 'true'
            00                (tagged fields)
          00                  (tagged fields)
        00007530 01           TimeoutMs, ValidateOnly
        00                    (tagged fields)
        """,
    ),
    (
        "delete_topics",
        DeleteTopics(names=("t", "u"), timeout=5.0),
        [6],
        """
        03                    Topics: two
          02 't'              Name
          00000000 00000000 00000000 00000000  TopicId: none
          00                  (tagged fields)
          02 'u'
          00000000 00000000 00000000 00000000
          00
        00001388              TimeoutMs
        00                    (tagged fields)
        """,
    ),
    (
        "describe_share_group_offsets",
        ListShareGroupOffsets(groups={"g": (HERE,), "h": None}),
        [0, 1],
        """
        03                    Groups: two
          02 'g'              GroupId
          02                  Topics: one
            02 't'            TopicName
            02 00000001       Partitions: one
            00                (tagged fields)
          00                  (tagged fields)
          02 'h' 00 00        GroupId, Topics: null, (tagged fields)
        00                    (tagged fields)
        """,
    ),
    (
        "alter_share_group_offsets",
        AlterShareGroupOffsets(group_id="g", offsets={HERE: 258}),
        [0],
        """
        02 'g'                GroupId
        02                    Topics: one
          02 't'              TopicName
          02                  Partitions: one
            00000001          PartitionIndex
            0000000000000102  StartOffset
            00                (tagged fields)
          00                  (tagged fields)
        00                    (tagged fields)
        """,
    ),
    (
        "delete_share_group_offsets",
        DeleteShareGroupOffsets(group_id="g", topics=("t",)),
        [0],
        """
        02 'g'                GroupId
        02 02 't' 00          Topics: one
        00                    (tagged fields)
        """,
    ),
    (
        "read_share_group_state",
        ReadState(group_id="g", leader_epochs={SHARE_PARTITION: 7}),
        [0],
        """
        02 'g'                GroupId
        02                    Topics: one
          00010203 04050607 08090a0b 0c0d0e0f  TopicId
          02                  Partitions: one
            00000003          Partition
            00000007          LeaderEpoch
            00                (tagged fields)
          00                  (tagged fields)
        00                    (tagged fields)
        """,
    ),
    (
        "read_share_group_state_summary",
        ReadStateSummary(group_id="g", partitions=(SHARE_PARTITION,)),
        [0, 1],
        """
        02 'g'                GroupId
        02                    Topics: one
          00010203 04050607 08090a0b 0c0d0e0f  TopicId
          02                  Partitions: one
            00000003          Partition
            ffffffff          LeaderEpoch: none
            00                (tagged fields)
          00                  (tagged fields)
        00                    (tagged fields)
        """,
    ),
    (
        "describe_configs",
        DescribeConfigs(resources=(GROUP,), names=None),
        [4],
        """
        02                    Resources: one
          20 02 'g'           ResourceType 32, ResourceName
          00                  ConfigurationKeys: null, all
          00                  (tagged fields)
        00 01                 synonyms no, documentation yes
        00                    (tagged fields)
        """,
    ),
    (
        "incremental_alter_configs",
        AlterConfigs(resource=GROUP, configs={"a": "1", "b": None}, validate_only=True),
        [1],
        """
        02                    Resources: one
          20 02 'g'           ResourceType 32, ResourceName
          03                  Configs: two
            02 'a' 00 02 '1' 00  Name, set, Value
            02 'b' 01 00 00   Name, delete, null
          00                  (tagged fields)
        01                    ValidateOnly
        00                    (tagged fields)
        """,
    ),
    (
        "list_offsets",
        ListOffsets(specs={HERE: OffsetSpec.EARLIEST}, read_committed=True),
        [7, 8],
        """
        ffffffff 01           ReplicaId: a consumer, IsolationLevel: committed
        02                    Topics: one
          02 't'              Name
          02                  Partitions: one
            00000001          PartitionIndex
            ffffffff          CurrentLeaderEpoch: unknown
            fffffffffffffffe  Timestamp: earliest
            00                (tagged fields)
          00                  (tagged fields)
        00                    (tagged fields)
        """,
    ),
    (
        "delete_records",
        DeleteRecords(offsets={HERE: 258}, timeout=15.0),
        [2],
        """
        02                    Topics: one
          02 't'              Name
          02                  Partitions: one
            00000001          PartitionIndex
            0000000000000102  Offset
            00                (tagged fields)
          00                  (tagged fields)
        00003a98              TimeoutMs
        00                    (tagged fields)
        """,
    ),
    (
        "produce",
        Produce(batches={HERE: b"records"}, timeout=30.0),
        [9, 10, 11, 12],
        """
        00                    TransactionalId: null
        ffff                  Acks: of all in-sync replicas
        00007530              TimeoutMs: 30 s
        02                    TopicData: one
          02 't'              Name
          02                  PartitionData: one
            00000001          Index
            08 'records'      Records
            00                (tagged fields)
          00                  (tagged fields)
        00                    (tagged fields)
        """,
    ),
    (
        "init_producer_id",
        InitProducerId(),
        [4, 5],
        """
        00                    TransactionalId: null
        00000000              TransactionTimeoutMs
        ffffffffffffffff      ProducerId: none
        ffff                  ProducerEpoch: none
        00                    (tagged fields)
        """,
    ),
    (
        "offset_fetch",
        ListConsumerGroupOffsets(groups={"g": (HERE,)}),
        [8],
        """
        02                    Groups: one
          02 'g'              GroupId
          02                  Topics: one
            02 't'            Name
            02 00000001       PartitionIndexes
            00                (tagged fields)
          00                  (tagged fields)
        01                    RequireStable
        00                    (tagged fields)
        """,
    ),
    (
        "offset_commit",
        AlterConsumerGroupOffsets(
            group_id="g", offsets={HERE: CommittedOffset(offset=9, metadata="m")}
        ),
        [8, 9],
        """
        02 'g'                GroupId
        ffffffff              GenerationIdOrMemberEpoch: none
        01                    MemberId: none
        00                    GroupInstanceId: null
        02                    Topics: one
          02 't'              Name
          02                  Partitions: one
            00000001          PartitionIndex
            0000000000000009  CommittedOffset
            ffffffff          CommittedLeaderEpoch: unknown
            02 'm'            CommittedMetadata
            00                (tagged fields)
          00                  (tagged fields)
        00                    (tagged fields)
        """,
    ),
    (
        "find_coordinator",
        FindCoordinators(kind=CoordinatorKind.SHARE, keys=("a", "b")),
        [4, 5, 6],
        """
        02                    KeyType: share
        03 02 'a' 02 'b'      CoordinatorKeys: two
        00                    (tagged fields)
        """,
    ),
    (
        "metadata",
        TopicMetadataRequest(names=("t",), authorized_operations=True),
        [12, 13],
        """
        02                    Topics: one
          00000000 00000000 00000000 00000000  TopicId: none
          02 't'              Name
          00                  (tagged fields)
        00                    AllowAutoTopicCreation: no
        01                    IncludeTopicAuthorizedOperations
        00                    (tagged fields)
        """,
    ),
    (
        "describe_cluster",
        DescribeCluster(authorized_operations=True),
        [2],
        """
        01 01 01              operations, EndpointType: brokers, fenced ones too
        00                    (tagged fields)
        """,
    ),
    (
        "api_versions",
        DescribeFeatures(),
        [3, 4],
        f"""
        0a 'sharecons'        ClientSoftwareName
        {len(VERSION) + 1:02x} '{VERSION}'  ClientSoftwareVersion
        00                    (tagged fields)
        """,
    ),
]

every_case = pytest.mark.parametrize(
    ("name", "request_", "version", "golden"),
    [
        pytest.param(name, request, version, golden, id=f"{name}-{version}")
        for name, request, versions, golden in CASES
        for version in versions
    ],
)


@every_case
def test_bytes_of_a_request(name, request_, version, golden):
    assert from_hex(golden) == api_of(type(request_)).write(request_, version)


@every_case
def test_kio_decodes_a_request_completely(name, request_, version, golden):
    camel = "".join(part.title() for part in name.split("_"))
    kind = getattr(schema(name, version), f"{camel}Request")

    decode_entity(kind, api_of(type(request_)).write(request_, version))


def test_all_topics_are_requested_by_null():
    written = api_of(TopicMetadataRequest).write(TopicMetadataRequest(names=None), 12)

    assert from_hex("00 00 00 00") == written
