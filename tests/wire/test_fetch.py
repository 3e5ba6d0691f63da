"""Fetch (1), versions 13 to 17."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.log_reader.messages import (
    Fetch,
    Fetched,
    FetchedPartition,
    FetchPosition,
)
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.fetch import FETCH
from tests.wire.oracle import decode_entity, encode_entity, from_hex, schema

ORDERS = bytes.fromhex("00112233445566778899aabbccddeeff")
BILLS = bytes.fromhex("ffeeddccbbaa99887766554433221100")

REQUEST = Fetch(
    max_wait=0.5,
    min_bytes=1,
    max_bytes=50 << 20,
    committed=True,
    partitions={
        SharePartition(BILLS, 4): FetchPosition(9, 1000, 1 << 20),
        SharePartition(ORDERS, 2): FetchPosition(-1, 7, 4096),
        SharePartition(ORDERS, 0): FetchPosition(3, 8, 4096),
    },
)

REPLICA_ID = """
    ffffffff                                         ReplicaId, -1
"""
REST = """
    000001f4                                         MaxWaitMs, 500
    00000001                                         MinBytes
    03200000                                         MaxBytes, 52,428,800
    01                                               IsolationLevel
    00000000                                         SessionId
    ffffffff                                         SessionEpoch, -1
    03                                               Topics: two
      ffeeddccbbaa99887766554433221100               TopicId
      02                                             Partitions: one
        00000004 00000009                            Partition, CurrentLeaderEpoch
        00000000000003e8                             FetchOffset
        ffffffff                                     LastFetchedEpoch
        ffffffffffffffff                             LogStartOffset
        00100000                                     PartitionMaxBytes
        00                                           (tagged fields)
      00                                             (tagged fields)
      00112233445566778899aabbccddeeff               TopicId
      03                                             Partitions: two
        00000002 ffffffff                            Partition, CurrentLeaderEpoch
        0000000000000007                             FetchOffset
        ffffffff                                     LastFetchedEpoch
        ffffffffffffffff                             LogStartOffset
        00001000                                     PartitionMaxBytes
        00                                           (tagged fields)
        00000000 00000003                            Partition, CurrentLeaderEpoch
        0000000000000008                             FetchOffset
        ffffffff                                     LastFetchedEpoch
        ffffffffffffffff                             LogStartOffset
        00001000                                     PartitionMaxBytes
        00                                           (tagged fields)
      00                                             (tagged fields)
    01                                               ForgottenTopicsData: none
    01                                               RackId: empty
    00                                               (tagged fields)
"""

RESPONSE = """
    00000064                                         ThrottleTimeMs, 100
    0000                                             ErrorCode
    00000000                                         SessionId
    02                                               Responses: one
      00112233445566778899aabbccddeeff               TopicId
      03                                             Partitions: two
        00000000                                     PartitionIndex
        0000                                         ErrorCode
        0000000000000064                             HighWatermark
        0000000000000063                             LastStableOffset
        0000000000000005                             LogStartOffset
        02                                           AbortedTransactions: one
          000000000000004d 0000000000000009 00       ProducerId, FirstOffset, tags
        ffffffff                                     PreferredReadReplica
        04 'xyz'                                     Records, 3 bytes
        00                                           (tagged fields)
        00000002                                     PartitionIndex
        0006                                         ErrorCode: not the leader
        ffffffffffffffff                             HighWatermark
        ffffffffffffffff                             LastStableOffset
        ffffffffffffffff                             LogStartOffset
        00                                           AbortedTransactions: null
        ffffffff                                     PreferredReadReplica
        00                                           Records: null
        01                                           (tagged fields): one
          01 09 00000003 00000007 00                 CurrentLeader: id, epoch, tags
      00                                             (tagged fields)
    01                                               (tagged fields): one
      00 10                                          NodeEndpoints, 16 bytes
        02 00000003 05 'host' 00002384 00 00         one: id, host, port, rack, tags
"""

FIRST = FetchedPartition(
    share_partition=SharePartition(ORDERS, 0),
    error=0,
    high_watermark=100,
    log_start_offset=5,
    aborted=((77, 9),),
    records=memoryview(b"xyz"),
)
SECOND = FetchedPartition(
    share_partition=SharePartition(ORDERS, 2),
    error=6,
    high_watermark=-1,
    log_start_offset=-1,
    aborted=(),
    records=memoryview(b""),
)


@pytest.mark.parametrize("version", [13, 14])
def test_request_has_replica_id_minus_1_before_version_15(version: int) -> None:
    assert from_hex(REPLICA_ID + REST) == FETCH.write(REQUEST, version)


@pytest.mark.parametrize("version", [15, 16, 17])
def test_request_has_no_replica_id_since_version_15(version: int) -> None:
    assert from_hex(REST) == FETCH.write(REQUEST, version)


@pytest.mark.parametrize("version", FETCH.versions)
def test_response_is_decoded(version: int) -> None:
    expected = Fetched(error=0, partitions=(FIRST, SECOND), throttle=0.1)

    assert expected == FETCH.read(from_hex(RESPONSE), 0, version)


def test_response_is_decoded_after_its_header() -> None:
    assert FETCH.read(from_hex(RESPONSE), 0, 17) == FETCH.read(
        b"12345" + from_hex(RESPONSE), 5, 17
    )


def test_records_are_not_copied() -> None:
    frame = bytearray(from_hex(RESPONSE))

    records = FETCH.read(memoryview(frame), 0, 17).partitions[0].records

    assert records.obj is frame


# Comparison with kio.

offsets = st.integers(-1, (1 << 63) - 1)
int32 = st.integers(-1, 0x7FFFFFFF)
partitions = st.builds(
    SharePartition, st.sampled_from([ORDERS, BILLS]), st.integers(0, 3)
)
requests = st.builds(
    Fetch,
    max_wait=st.integers(0, 1 << 31).map(lambda ms: ms / 1000),
    min_bytes=st.integers(0, 0x7FFFFFFF),
    max_bytes=st.integers(0, 0x7FFFFFFF),
    committed=st.booleans(),
    partitions=st.dictionaries(
        partitions, st.builds(FetchPosition, int32, offsets, int32)
    ),
)


@pytest.mark.parametrize("version", FETCH.versions)
@given(request_=requests)
def test_kio_decodes_every_request(version: int, request_: Fetch) -> None:
    got = decode_entity(
        schema("fetch", version).FetchRequest, FETCH.write(request_, version)
    )

    assert min(request_.max_wait, 0x7FFFFFFF / 1000) == got.max_wait.total_seconds()
    assert request_.min_bytes == got.min_bytes
    assert request_.max_bytes == got.max_bytes
    assert request_.committed == bool(got.isolation_level)
    assert (0, -1) == (got.session_id, got.session_epoch)
    assert request_.partitions == {
        SharePartition(topic.topic_id.bytes, each.partition): FetchPosition(
            each.current_leader_epoch, each.fetch_offset, each.partition_max_bytes
        )
        for topic in got.topics
        for each in topic.partitions
    }


responses = st.builds(
    Fetched,
    error=st.sampled_from([code.value for code in ErrorCode]),
    throttle=st.integers(0, 1 << 30).map(lambda ms: ms / 1000),
    partitions=st.lists(
        st.builds(
            FetchedPartition,
            share_partition=partitions,
            error=st.sampled_from([code.value for code in ErrorCode]),
            high_watermark=offsets,
            log_start_offset=offsets,
            aborted=st.lists(st.tuples(offsets, offsets), max_size=3).map(tuple),
            records=st.binary(max_size=300).map(memoryview),
        ),
        max_size=4,
    ).map(tuple),
)


def entity(response: Fetched, version: int) -> Any:
    v = schema("fetch", version).response
    return v.FetchResponse(
        throttle_time=timedelta(seconds=response.throttle),
        error_code=ErrorCode(response.error),
        responses=tuple(
            v.FetchableTopicResponse(
                topic_id=UUID(bytes=each.share_partition.topic_id),
                partitions=(
                    v.PartitionData(
                        partition_index=each.share_partition.partition,
                        error_code=ErrorCode(each.error),
                        high_watermark=each.high_watermark,
                        log_start_offset=each.log_start_offset,
                        current_leader=v.LeaderIdAndEpoch(leader_id=3, leader_epoch=4),
                        aborted_transactions=tuple(
                            v.AbortedTransaction(producer_id=who, first_offset=first)
                            for who, first in each.aborted
                        ),
                        records=each.records.tobytes(),
                    ),
                ),
            )
            for each in response.partitions
        ),
    )


@pytest.mark.parametrize("version", FETCH.versions)
@given(response=responses)
def test_every_response_encoded_by_kio_is_decoded(
    version: int, response: Fetched
) -> None:
    assert response == FETCH.read(encode_entity(entity(response, version)), 0, version)


# Invalid responses.


def test_truncated_response_is_rejected() -> None:
    whole = from_hex(RESPONSE)
    for size in range(len(whole)):
        with pytest.raises(ProtocolError, match="invalid Fetch response"):
            FETCH.read(whole[:size], 0, 17)


def test_bytes_after_the_response_are_rejected() -> None:
    with pytest.raises(ProtocolError, match="1 bytes after its end"):
        FETCH.read(from_hex(RESPONSE) + b"x", 0, 17)


@given(garbage=st.binary(max_size=200))
def test_random_bytes_are_decoded_or_a_protocol_error(garbage: bytes) -> None:
    try:
        FETCH.read(garbage, 0, 17)
    except ProtocolError:
        pass


def test_unknown_error_codes_stay_numbers() -> None:
    response = from_hex(RESPONSE).replace(b"\0\0\0\2\0\6", b"\0\0\0\2\x27\x10")

    assert 10000 == FETCH.read(response, 0, 17).partitions[1].error


def test_numbers_out_of_range_are_a_protocol_error() -> None:
    request = Fetch(
        max_wait=1.0,
        min_bytes=1,
        max_bytes=1 << 40,
        committed=False,
        partitions={},
    )

    with pytest.raises(ProtocolError, match="cannot write a Fetch"):
        FETCH.write(request, 17)
