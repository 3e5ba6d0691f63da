"""Metadata (3), versions 12 and 13."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons.protocol.group.messages import (
    MetadataRequest,
    MetadataResponse,
    TopicDescription,
)
from sharecons.protocol.partitions import Endpoint, PartitionLeader
from sharecons.wire.metadata import METADATA
from tests.wire.oracle import decode_entity, encode_entity, from_hex, schema

ORDERS = bytes.fromhex("00112233445566778899aabbccddeeff")

REQUEST = MetadataRequest(names=("orders",), ids=(ORDERS,))
REQUEST_BYTES = """
    03                                         Topics: two
      00000000000000000000000000000000         TopicId: null
      07 'orders' 00                           Name, tags
      00112233445566778899aabbccddeeff         TopicId
      00 00                                    Name: null, tags
    00                                         AllowAutoTopicCreation: no
    00                                         IncludeTopicAuthorizedOperations
    00                                         (tagged fields)
"""
RESPONSE = """
    00000000                                   ThrottleTimeMs
    02                                         Brokers: one
      00000001 03 'b1' 00002384 02 'r' 00      id, host, port, rack, tags
    08 'cluster'                               ClusterId
    00000001                                   ControllerId
    03                                         Topics: two
      0000                                     ErrorCode
      07 'orders'                              Name
      00112233445566778899aabbccddeeff         TopicId
      00                                       IsInternal
      03                                       Partitions: two
        0000 00000000 00000001 00000007        error, index, leader, leader's epoch
        02 00000001 02 00000001 01 00          replicas, in sync, offline, tags
        0005 00000001 ffffffff 00000008        error, index, no leader, epoch
        02 00000001 01 01 00                   replicas, in sync, offline, tags
      80000000                                 TopicAuthorizedOperations
      00                                       (tagged fields)
      0003                                     ErrorCode: unknown topic
      05 'none'                                Name
      00000000000000000000000000000000         TopicId: null
      00 01 80000000 00                        internal, partitions, rights, tags
"""
RESPONSE_END_12 = """
    00                                         (tagged fields)
"""
RESPONSE_END_13 = """
    0000                                       ErrorCode
    00                                         (tagged fields)
"""

EXPECTED = MetadataResponse(
    brokers={1: Endpoint("b1", 9092)},
    topics=(
        TopicDescription(
            error=0,
            name="orders",
            topic_id=ORDERS,
            leaders={0: PartitionLeader(1, 7), 1: PartitionLeader(-1, 8)},
        ),
        TopicDescription(error=3, name="none", topic_id=None, leaders={}),
    ),
    cluster_id="cluster",
)


@pytest.mark.parametrize("version", [12, 13])
def test_request_has_names_and_ids_and_creates_no_topic(version):
    assert from_hex(REQUEST_BYTES) == METADATA.write(REQUEST, version)


@pytest.mark.parametrize(
    ("version", "end"), [(12, RESPONSE_END_12), (13, RESPONSE_END_13)]
)
def test_response(version, end):
    assert EXPECTED == METADATA.read(from_hex(RESPONSE + end), 0, version)


# Comparison with kio.

names = st.text(min_size=1, max_size=10)
ids = st.binary(min_size=16, max_size=16).filter(any)


@pytest.mark.parametrize("version", [12, 13])
@given(names=st.lists(names).map(tuple), ids=st.lists(ids).map(tuple))
def test_kio_decodes_every_request(version, names, ids):
    kind = schema("metadata", version).MetadataRequest

    got = decode_entity(
        kind, METADATA.write(MetadataRequest(names=names, ids=ids), version)
    )

    assert names == tuple(t.name for t in got.topics if t.name is not None)
    assert ids == tuple(t.topic_id.bytes for t in got.topics if t.topic_id)
    assert not got.allow_auto_topic_creation


leaders = st.dictionaries(
    st.integers(0, 99), st.builds(PartitionLeader, st.integers(-1, 9), st.integers(-1))
)
topics = st.builds(
    TopicDescription,
    error=st.sampled_from([code.value for code in ErrorCode]),
    name=st.none() | names,
    topic_id=st.none() | ids,
    leaders=leaders.map(
        lambda by_index: {
            i: PartitionLeader(node, min(epoch, 0x7FFFFFFF))
            for i, (node, epoch) in by_index.items()
        }
    ),
)
endpoints = st.builds(Endpoint, names, st.integers(0, 65535))


@pytest.mark.parametrize("version", [12, 13])
@given(
    brokers=st.dictionaries(st.integers(0, 9), endpoints),
    topics=st.lists(topics).map(tuple),
)
def test_every_response_encoded_by_kio_is_decoded(version, brokers, topics):
    v = schema("metadata", version).response
    entity = v.MetadataResponse(
        throttle_time=timedelta(0),
        brokers=tuple(
            v.MetadataResponseBroker(node_id=node_id, host=host, port=port)
            for node_id, (host, port) in brokers.items()
        ),
        topics=tuple(
            v.MetadataResponseTopic(
                error_code=ErrorCode(topic.error),
                name=topic.name,
                topic_id=topic.topic_id and UUID(bytes=topic.topic_id),
                partitions=tuple(
                    v.MetadataResponsePartition(
                        error_code=ErrorCode.none,
                        partition_index=index,
                        leader_id=leader.leader_id,
                        leader_epoch=leader.leader_epoch,
                    )
                    for index, leader in topic.leaders.items()
                ),
            )
            for topic in topics
        ),
        **({"error_code": ErrorCode.none} if version == 13 else {}),
    )

    expected = MetadataResponse(brokers=brokers, topics=topics)
    assert expected == METADATA.read(encode_entity(entity), 0, version)
