"""ShareAcknowledge (79), versions 1 and 2."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons.protocol.partitions import Endpoint, PartitionLeader, SharePartition
from sharecons.protocol.share_messages import (
    PartitionResponse,
    Range,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
)
from sharecons.wire.share_acknowledge import SHARE_ACKNOWLEDGE
from tests.wire.oracle import decode_entity, encode_entity, from_hex, schema

ORDERS = bytes.fromhex("00112233445566778899aabbccddeeff")
BILLS = bytes.fromhex("ffeeddccbbaa99887766554433221100")

REQUEST = ShareAcknowledge(
    group_id="billing",
    member_id="m",
    share_session_epoch=-1,
    is_renew_ack=True,
    acknowledgements={
        SharePartition(BILLS, 1): (Range(5, 5, bytes((4,))),),
        SharePartition(ORDERS, 0): (Range(10, 12, bytes((1, 2, 3))),),
    },
)

HEAD = """
    08 'billing'                                     GroupId
    02 'm'                                           MemberId
    ffffffff                                         ShareSessionEpoch, -1
"""
MODE = """
    01                                               IsRenewAck
"""
TAIL = """
    03                                               Topics: two
      00112233445566778899aabbccddeeff               TopicId
      02                                             Partitions: one
        00000000                                     PartitionIndex
        02                                           AcknowledgementBatches: one
          000000000000000a 000000000000000c          FirstOffset, LastOffset
          04 01 02 03                                accept, release, reject
          00 00 00                                   (tagged fields, three times)
      ffeeddccbbaa99887766554433221100               TopicId
      02                                             Partitions: one
        00000001                                     PartitionIndex
        02                                           AcknowledgementBatches: one
          0000000000000005 0000000000000005          FirstOffset, LastOffset
          02 04                                      renew
          00 00 00                                   (tagged fields, three times)
    00                                               (tagged fields)
"""

RESPONSE_HEAD = """
    00000000                                         ThrottleTimeMs
    007b                                             ErrorCode, 123
    06 'epoch'                                       ErrorMessage
"""
RESPONSE_LOCK = """
    00003a98                                         AcquisitionLockTimeoutMs, 15,000
"""
RESPONSE_TAIL = """
    02                                               Responses: one
      00112233445566778899aabbccddeeff               TopicId
      02                                             Partitions: one
        00000000                                     PartitionIndex
        0006                                         ErrorCode, not the leader
        00                                           ErrorMessage: null
        00000003 00000008 00                         CurrentLeader: id, epoch, tags
        00                                           (tagged fields)
      00                                             (tagged fields)
    02                                               NodeEndpoints: one
      00000003 03 'b3' 00002384 00 00                id, host, port, rack, tags
    00                                               (tagged fields)
"""

PARTITION = PartitionResponse(
    share_partition=SharePartition(ORDERS, 0),
    error=0,
    message=None,
    acknowledge_error=6,
    acknowledge_message=None,
    leader=PartitionLeader(3, 8),
    records=b"",
    acquired=(),
)


def acknowledged(lock_timeout):
    return ShareAcknowledgeResponse(
        error=123,
        message="epoch",
        lock_timeout=lock_timeout,
        partitions=(PARTITION,),
        endpoints={3: Endpoint("b3", 9092)},
        throttle=0.0,
    )


def test_request_in_version_1_has_no_renew_flag():
    assert from_hex(HEAD + TAIL) == SHARE_ACKNOWLEDGE.write(REQUEST, 1)


def test_request_in_version_2_has_the_renew_flag():
    assert from_hex(HEAD + MODE + TAIL) == SHARE_ACKNOWLEDGE.write(REQUEST, 2)


def test_response_in_version_1_has_no_lock_timeout():
    response = from_hex(RESPONSE_HEAD + RESPONSE_TAIL)

    assert acknowledged(0.0) == SHARE_ACKNOWLEDGE.read(response, 0, 1)


def test_response_in_version_2_has_a_lock_timeout():
    response = from_hex(RESPONSE_HEAD + RESPONSE_LOCK + RESPONSE_TAIL)

    assert acknowledged(15.0) == SHARE_ACKNOWLEDGE.read(response, 0, 2)


def test_negative_lock_timeout_is_zero():
    response = from_hex(RESPONSE_HEAD + "ffffffff" + RESPONSE_TAIL)

    assert 0.0 == SHARE_ACKNOWLEDGE.read(response, 0, 2).lock_timeout


# Comparison with kio.

partitions = st.builds(
    SharePartition, st.sampled_from([ORDERS, BILLS]), st.integers(0, 3)
)
offsets = st.integers(0, (1 << 63) - 2)
kinds = st.lists(st.sampled_from([0, 1, 2, 3, 4]), min_size=1, max_size=3).map(bytes)
ranges = st.builds(Range, offsets, offsets, kinds)


@pytest.mark.slow("a hundred random requests, which kio decodes")
@pytest.mark.parametrize("version", [1, 2])
@given(
    acks=st.dictionaries(partitions, st.lists(ranges, min_size=1).map(tuple)),
    epoch=st.integers(-1, 0x7FFFFFFF),
    is_renew_ack=st.booleans(),
)
def test_kio_decodes_every_request(version, acks, epoch, is_renew_ack):
    request = ShareAcknowledge(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        is_renew_ack=is_renew_ack,
        acknowledgements=acks,
    )
    kind = schema("share_acknowledge", version).ShareAcknowledgeRequest

    got = decode_entity(kind, SHARE_ACKNOWLEDGE.write(request, version))

    assert ("g", "m", epoch) == (got.group_id, got.member_id, got.share_session_epoch)
    assert version == 1 or is_renew_ack == got.is_renew_ack
    assert acks == {
        SharePartition(topic.topic_id.bytes, part.partition_index): tuple(
            Range(b.first_offset, b.last_offset, bytes(b.acknowledge_types))
            for b in part.acknowledgement_batches
        )
        for topic in got.topics
        for part in topic.partitions
    }


codes = st.sampled_from([code.value for code in ErrorCode])


@pytest.mark.parametrize("version", [1, 2])
@given(
    code=codes,
    parts=st.dictionaries(partitions, st.tuples(codes, st.none() | st.text())),
    leader=st.builds(PartitionLeader, st.integers(-1, 9), st.integers(-1, 9)),
)
def test_every_response_encoded_by_kio_is_decoded(version, code, parts, leader):
    v = schema("share_acknowledge", version).response
    lock = {"acquisition_lock_timeout": timedelta(seconds=9)} if version == 2 else {}
    kio_leader = v.LeaderIdAndEpoch(
        leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
    )
    entity = v.ShareAcknowledgeResponse(
        throttle_time=timedelta(seconds=1),
        error_code=ErrorCode(code),
        responses=tuple(
            v.ShareAcknowledgeTopicResponse(
                topic_id=UUID(bytes=p.topic_id),
                partitions=(
                    v.PartitionData(
                        partition_index=p.partition,
                        error_code=ErrorCode(error),
                        error_message=message,
                        current_leader=kio_leader,
                    ),
                ),
            )
            for p, (error, message) in parts.items()
        ),
        node_endpoints=(),
        **lock,
    )

    got = SHARE_ACKNOWLEDGE.read(encode_entity(entity), 0, version)

    expected = tuple(
        PartitionResponse(p, 0, None, error, message, leader, b"", ())
        for p, (error, message) in parts.items()
    )
    assert (code, expected, 1.0) == (got.error, got.partitions, got.throttle)
