"""ShareGroupHeartbeat (76), version 1."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons.protocol.group.messages import Heartbeat, HeartbeatResponse
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.share_group_heartbeat import SHARE_GROUP_HEARTBEAT
from tests.wire.oracle import decode_entity, encode_entity, from_hex, schema

ORDERS = bytes.fromhex("00112233445566778899aabbccddeeff")

JOIN = Heartbeat(
    group_id="billing",
    member_id="AAECAwQFBgcICQoLDA0ODw",
    member_epoch=0,
    rack="r1",
    topics=("orders", "ä"),
)
JOIN_BYTES = """
    08 'billing'                       GroupId
    17 'AAECAwQFBgcICQoLDA0ODw'        MemberId
    00000000                           MemberEpoch
    03 'r1'                            RackId
    03 07 'orders' 03 c3a4             SubscribedTopicNames: two, UTF-8
    00                                 (tagged fields)
"""
STAY = Heartbeat(group_id="g", member_id="m", member_epoch=-1, rack=None, topics=None)
STAY_BYTES = """
    02 'g' 02 'm'                      GroupId, MemberId
    ffffffff                           MemberEpoch, -1
    00                                 RackId: null, as before
    00                                 SubscribedTopicNames: null, as before
    00                                 (tagged fields)
"""

RESPONSE = """
    0000000a                           ThrottleTimeMs, 10
    0000                               ErrorCode
    00                                 ErrorMessage: null
    02 'm'                             MemberId
    00000005                           MemberEpoch
    00001388                           HeartbeatIntervalMs, 5,000
    01                                 Assignment: not null (KIP-893)
      02                               TopicPartitions: one
        00112233445566778899aabbccddeeff
        03 00000000 00000002           Partitions
        00                             (tagged fields)
      00                               (tagged fields)
    00                                 (tagged fields)
"""
UNCHANGED_RESPONSE = """
    00000000                           ThrottleTimeMs
    006e                               ErrorCode, fenced member epoch
    07 'fenced'                        ErrorMessage
    00                                 MemberId: null
    00000000                           MemberEpoch
    00001388                           HeartbeatIntervalMs
    ff                                 Assignment: null
    00                                 (tagged fields)
"""


def expected_response(assignment):
    return HeartbeatResponse(
        error=0,
        message=None,
        member_epoch=5,
        heartbeat_interval=5.0,
        assignment=assignment,
        throttle=0.01,
    )


@pytest.mark.parametrize(
    ("request_", "expected"),
    [(JOIN, JOIN_BYTES), (STAY, STAY_BYTES)],
    ids=["join", "stay"],
)
def test_request(request_, expected):
    assert from_hex(expected) == SHARE_GROUP_HEARTBEAT.write(request_, 1)


def test_response_with_an_assignment():
    expected = expected_response(
        frozenset({SharePartition(ORDERS, 0), SharePartition(ORDERS, 2)})
    )

    assert expected == SHARE_GROUP_HEARTBEAT.read(from_hex(RESPONSE), 0, 1)


def test_response_without_an_assignment_has_none():
    expected = HeartbeatResponse(
        error=110,
        message="fenced",
        member_epoch=0,
        heartbeat_interval=5.0,
        assignment=None,
        throttle=0.0,
    )

    assert expected == SHARE_GROUP_HEARTBEAT.read(from_hex(UNCHANGED_RESPONSE), 0, 1)


def test_response_that_revokes_everything_has_an_empty_assignment():
    v = schema("share_group_heartbeat", 1).response
    entity = v.ShareGroupHeartbeatResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        member_epoch=5,
        heartbeat_interval=timedelta(seconds=5),
        assignment=v.Assignment(topic_partitions=()),
    )

    response = SHARE_GROUP_HEARTBEAT.read(encode_entity(entity), 0, 1)

    assert frozenset() == response.assignment


def test_negative_partition_is_not_assigned():
    response = from_hex(RESPONSE.replace("00000002", "ffffffff"))

    expected = expected_response(frozenset({SharePartition(ORDERS, 0)}))
    assert expected == SHARE_GROUP_HEARTBEAT.read(response, 0, 1)


def test_topic_without_an_id_is_not_assigned():
    response = from_hex(RESPONSE.replace(ORDERS.hex(), "00" * 16))

    assert expected_response(frozenset()) == SHARE_GROUP_HEARTBEAT.read(response, 0, 1)


# Comparison with kio.

texts = st.text(max_size=10)
ids = st.binary(min_size=16, max_size=16).filter(any)


@given(
    group=texts,
    epoch=st.integers(-1, 0x7FFFFFFF),
    rack=st.none() | texts,
    topics=st.none() | st.lists(texts).map(tuple),
)
def test_kio_decodes_every_request(group, epoch, rack, topics):
    request = Heartbeat(
        group_id=group, member_id="m", member_epoch=epoch, rack=rack, topics=topics
    )
    kind = schema("share_group_heartbeat", 1).ShareGroupHeartbeatRequest

    got = decode_entity(kind, SHARE_GROUP_HEARTBEAT.write(request, 1))

    assert request == Heartbeat(
        group_id=got.group_id,
        member_id=got.member_id,
        member_epoch=got.member_epoch,
        rack=got.rack_id,
        topics=got.subscribed_topic_names,
    )


@given(
    code=st.sampled_from(ErrorCode),
    message=st.none() | texts,
    epoch=st.integers(-1, 0x7FFFFFFF),
    interval=st.integers(0, 0x7FFFFFFF),
    assigned=st.none() | st.frozensets(st.tuples(ids, st.integers(0, 99))),
)
def test_every_response_encoded_by_kio_is_decoded(
    code, message, epoch, interval, assigned
):
    v = schema("share_group_heartbeat", 1).response
    assignment = None
    if assigned is not None:
        assignment = v.Assignment(
            topic_partitions=tuple(
                v.TopicPartitions(
                    topic_id=UUID(bytes=topic_id), partitions=(partition,)
                )
                for topic_id, partition in assigned
            )
        )
    entity = v.ShareGroupHeartbeatResponse(
        throttle_time=timedelta(milliseconds=interval),
        error_code=code,
        error_message=message,
        member_id="m",
        member_epoch=epoch,
        heartbeat_interval=timedelta(milliseconds=interval),
        assignment=assignment,
    )

    expected = HeartbeatResponse(
        error=code.value,
        message=message,
        member_epoch=epoch,
        heartbeat_interval=interval / 1000,
        assignment=assigned,
        throttle=interval / 1000,
    )
    assert expected == SHARE_GROUP_HEARTBEAT.read(encode_entity(entity), 0, 1)
