"""ShareFetch (78), versions 1 and 2."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.partitions import Endpoint, PartitionLeader, SharePartition
from sharecons.protocol.share_messages import (
    PartitionResponse,
    Range,
    ShareFetch,
    ShareFetchResponse,
)
from sharecons.wire.share_fetch import SHARE_FETCH
from tests.wire.oracle import (
    decode_entity,
    encode_entity,
    from_hex,
    read_as_bytes_and_view,
    schema,
)

ORDERS = bytes.fromhex("00112233445566778899aabbccddeeff")
BILLS = bytes.fromhex("ffeeddccbbaa99887766554433221100")

REQUEST = ShareFetch(
    group_id="billing",
    member_id="AAECAwQFBgcICQoLDA0ODw",
    share_session_epoch=7,
    max_wait=0.5,
    min_bytes=1,
    max_bytes=50 << 20,
    max_records=500,
    record_limit=True,
    added=frozenset({SharePartition(ORDERS, 2)}),
    forgotten=frozenset({SharePartition(BILLS, 0), SharePartition(BILLS, 1)}),
    acknowledgements={
        SharePartition(ORDERS, 0): (
            Range(10, 12, bytes((1,))),
            Range(13, 14, bytes((2, 0))),
        )
    },
)

HEAD = """
    08 'billing'                                     GroupId, 7 long
    17 'AAECAwQFBgcICQoLDA0ODw'                      MemberId, 22 long
    00000007                                         ShareSessionEpoch
    000001f4                                         MaxWaitMs, 500
    00000001                                         MinBytes
    03200000                                         MaxBytes, 52,428,800
    000001f4                                         MaxRecords
    000001f4                                         BatchSize
"""
MODE = """
    01                                               ShareAcquireMode: record limit
    00                                               IsRenewAck
"""
TAIL = """
    02                                               Topics: one
      00112233445566778899aabbccddeeff               TopicId
      03                                             Partitions: two
        00000000                                     PartitionIndex
        03                                           AcknowledgementBatches: two
          000000000000000a 000000000000000c          FirstOffset, LastOffset
          02 01                                      AcknowledgeTypes: accept all
          00                                         (tagged fields)
          000000000000000d 000000000000000e          FirstOffset, LastOffset
          03 02 00                                   AcknowledgeTypes: release, gap
          00                                         (tagged fields)
        00                                           (tagged fields)
        00000002                                     PartitionIndex
        01                                           AcknowledgementBatches: none
        00                                           (tagged fields)
      00                                             (tagged fields)
    02                                               ForgottenTopicsData: one
      ffeeddccbbaa99887766554433221100               TopicId
      03 00000000 00000001                           Partitions
      00                                             (tagged fields)
    00                                               (tagged fields)
"""

RESPONSE = """
    00000064                                         ThrottleTimeMs, 100
    0000                                             ErrorCode
    00                                               ErrorMessage: null
    00007530                                         AcquisitionLockTimeoutMs, 30,000
    02                                               Responses: one
      00112233445566778899aabbccddeeff               TopicId
      03                                             Partitions: two
        00000000                                     PartitionIndex
        0000                                         ErrorCode
        00                                           ErrorMessage: null
        0079                                         AcknowledgeErrorCode, 121
        06 'stale'                                   AcknowledgeErrorMessage
        00000001 00000005 00                         CurrentLeader: id, epoch, tags
        04 'xyz'                                     Records, 3 bytes
        03                                           AcquiredRecords: two
          000000000000000a 000000000000000c 0001 00  first, last, count, tags
          000000000000000e 000000000000000e 0003 00
        00                                           (tagged fields)
        00000002                                     PartitionIndex
        0006                                         ErrorCode: not the leader
        05 'gone'                                    ErrorMessage
        0000                                         AcknowledgeErrorCode
        00                                           AcknowledgeErrorMessage: null
        ffffffff ffffffff 00                         CurrentLeader: none
        01                                           Records: empty
        01                                           AcquiredRecords: none
        00                                           (tagged fields)
      00                                             (tagged fields)
    02                                               NodeEndpoints: one
      00000003                                       NodeId
      05 'host'                                      Host
      00002384                                       Port, 9092
      00                                             Rack: null
      00                                             (tagged fields)
    00                                               (tagged fields)
"""

FIRST = PartitionResponse(
    share_partition=SharePartition(ORDERS, 0),
    error=0,
    message=None,
    acknowledge_error=121,
    acknowledge_message="stale",
    leader=PartitionLeader(1, 5),
    records=b"xyz",
    acquired=((10, 12, 1), (14, 14, 3)),
)
SECOND = PartitionResponse(
    share_partition=SharePartition(ORDERS, 2),
    error=6,
    message="gone",
    acknowledge_error=0,
    acknowledge_message=None,
    leader=PartitionLeader(-1, -1),
    records=b"",
    acquired=(),
)


def fetched(version: int, **changes: Any) -> ShareFetchResponse:
    parts: dict[str, Any] = {
        "error": 0,
        "message": None,
        "lock_timeout": 30.0,
        "renewable": version == 2,
        "partitions": (FIRST, SECOND),
        "endpoints": {3: Endpoint("host", 9092)},
        "throttle": 0.1,
    }
    return ShareFetchResponse(**(parts | changes))


def test_request_in_version_1_has_no_acquire_mode() -> None:
    assert from_hex(HEAD + TAIL) == SHARE_FETCH.write(REQUEST, 1)


def test_request_in_version_2_has_the_acquire_mode() -> None:
    assert from_hex(HEAD + MODE + TAIL) == SHARE_FETCH.write(REQUEST, 2)


def read_response(response: bytes, version: int = 2, at: int = 0) -> ShareFetchResponse:
    return read_as_bytes_and_view(
        lambda frame: SHARE_FETCH.read(frame, at, version), response
    )


@pytest.mark.parametrize("version", [1, 2])
def test_response_is_decoded(version: int) -> None:
    assert fetched(version) == read_response(from_hex(RESPONSE), version)


def test_response_is_decoded_after_its_header() -> None:
    assert fetched(2) == read_response(b"12345" + from_hex(RESPONSE), at=5)


# Comparison with kio.

offsets = st.integers(0, (1 << 63) - 2)
kinds = st.lists(st.sampled_from([0, 1, 2, 3]), min_size=1, max_size=3).map(bytes)
partitions = st.builds(
    SharePartition, st.sampled_from([ORDERS, BILLS]), st.integers(0, 3)
)
requests = st.builds(
    ShareFetch,
    group_id=st.text(min_size=1, max_size=20),
    member_id=st.text(min_size=1, max_size=40),
    share_session_epoch=st.integers(-1, 0x7FFFFFFF),
    max_wait=st.integers(0, 1 << 31).map(lambda ms: ms / 1000),
    min_bytes=st.integers(0, 0x7FFFFFFF),
    max_bytes=st.integers(0, 0x7FFFFFFF),
    max_records=st.integers(1, 0x7FFFFFFF),
    record_limit=st.booleans(),
    added=st.frozensets(partitions),
    forgotten=st.frozensets(partitions),
    acknowledgements=st.dictionaries(
        partitions,
        st.lists(st.builds(Range, offsets, offsets, kinds), min_size=1).map(tuple),
    ),
)


def by_topic(topics: Any) -> dict[SharePartition, Any]:
    return {
        SharePartition(topic.topic_id.bytes, part.partition_index): tuple(
            Range(b.first_offset, b.last_offset, bytes(b.acknowledge_types))
            for b in part.acknowledgement_batches
        )
        for topic in topics
        for part in topic.partitions
    }


@pytest.mark.slow("a hundred random requests, which kio decodes")
@pytest.mark.parametrize("version", [1, 2])
@given(request_=requests)
def test_kio_decodes_every_request(version: int, request_: ShareFetch) -> None:
    kind = schema("share_fetch", version).ShareFetchRequest

    got = decode_entity(kind, SHARE_FETCH.write(request_, version))

    assert request_.group_id == got.group_id
    assert request_.member_id == got.member_id
    assert request_.share_session_epoch == got.share_session_epoch
    assert min(request_.max_wait, 0x7FFFFFFF / 1000) == got.max_wait.total_seconds()
    assert request_.min_bytes == got.min_bytes
    assert request_.max_bytes == got.max_bytes
    assert request_.max_records == got.max_records == got.batch_size
    acknowledgements = request_.acknowledgements
    assert {
        p: acknowledgements.get(p, ()) for p in request_.added | acknowledgements.keys()
    } == by_topic(got.topics)
    assert request_.forgotten == {
        SharePartition(topic.topic_id.bytes, partition)
        for topic in got.forgotten_topics_data
        for partition in topic.partitions
    }
    if version == 2:
        assert request_.record_limit == bool(got.share_acquire_mode)
        assert not got.is_renew_ack


codes = st.sampled_from([code.value for code in ErrorCode])
texts = st.none() | st.text(max_size=10)


@st.composite
def ascending(draw: st.DrawFn) -> tuple[tuple[int, int, int], ...]:
    bounds = sorted(draw(st.sets(offsets, max_size=6)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return tuple((first, last, draw(st.integers(1, 5))) for first, last in pairs)


responses = st.builds(
    ShareFetchResponse,
    error=codes,
    message=texts,
    lock_timeout=st.integers(0, 0x7FFFFFFF).map(lambda ms: ms / 1000),
    renewable=st.just(value=True),
    partitions=st.lists(
        st.builds(
            PartitionResponse,
            partitions,
            codes,
            texts,
            codes,
            texts,
            st.builds(PartitionLeader, st.integers(-1, 9), st.integers(-1, 9)),
            st.binary(max_size=20),
            ascending(),
        ),
        max_size=4,
    ).map(tuple),
    endpoints=st.dictionaries(
        st.integers(0, 9),
        st.builds(Endpoint, st.text(max_size=9), st.integers(0, 65535)),
    ),
    throttle=st.integers(0, 0x7FFFFFFF).map(lambda ms: ms / 1000),
)


def entity(response: ShareFetchResponse, version: int) -> Any:
    v = schema("share_fetch", version).response
    return v.ShareFetchResponse(
        throttle_time=timedelta(seconds=response.throttle),
        error_code=ErrorCode(response.error),
        error_message=response.message,
        acquisition_lock_timeout=timedelta(seconds=response.lock_timeout),
        responses=tuple(
            v.ShareFetchableTopicResponse(
                topic_id=UUID(bytes=p.share_partition.topic_id),
                partitions=(_partition(v, p),),
            )
            for p in response.partitions
        ),
        node_endpoints=tuple(
            v.NodeEndpoint(node_id=node_id, host=host, port=port)
            for node_id, (host, port) in response.endpoints.items()
        ),
    )


def _partition(v: Any, p: PartitionResponse) -> Any:
    return v.PartitionData(
        partition_index=p.share_partition.partition,
        error_code=ErrorCode(p.error),
        error_message=p.message,
        acknowledge_error_code=p.acknowledge_error,
        acknowledge_error_message=p.acknowledge_message,
        current_leader=v.LeaderIdAndEpoch(
            leader_id=p.leader.leader_id, leader_epoch=p.leader.leader_epoch
        ),
        records=p.records,
        acquired_records=tuple(
            v.AcquiredRecords(
                first_offset=first, last_offset=last, delivery_count=count
            )
            for first, last, count in p.acquired
        ),
    )


@given(response=responses)
def test_every_response_encoded_by_kio_is_decoded(
    response: ShareFetchResponse,
) -> None:
    assert response == read_response(encode_entity(entity(response, 2)))


@pytest.mark.parametrize("leader", [(0, 0), (-1, -1), (0, -1), (-1, 0), (0, 7), (3, 0)])
def test_leader_of_a_partition_is_decoded(leader: tuple[int, int]) -> None:
    partition = replace(FIRST, leader=PartitionLeader(*leader))
    response = fetched(2, partitions=(partition,))
    assert response == read_response(encode_entity(entity(response, 2)))


# Invalid responses, and valid ones that kio rejects.


def with_acquired(*acquired: tuple[int, int, int]) -> bytes:
    partition = replace(FIRST, acquired=acquired)
    return encode_entity(entity(fetched(2, partitions=(partition,)), 2))


@pytest.mark.parametrize(
    "acquired",
    [
        [(10, 9, 1)],
        [(5, 9, 1), (9, 12, 1)],
        [(5, 9, 1), (2, 3, 1)],
        [(-2, -1, 1)],
        [(-1, 3, 1)],
    ],
    ids=["backwards", "overlapping", "descending", "negative", "from a negative one"],
)
def test_descending_acquired_ranges_are_rejected(
    acquired: list[tuple[int, int, int]],
) -> None:
    with pytest.raises(ProtocolError, match="not ascending"):
        read_response(with_acquired(*acquired))


def test_null_records_are_empty() -> None:
    # Not nullable since version 1, but a broker can still send null.
    null = from_hex(RESPONSE).replace(b"\x04xyz", b"\x00")

    first = read_response(null).partitions[0]

    assert replace(FIRST, records=b"") == first


LEADER = "00000001 00000005 00                         CurrentLeader: id, epoch, tags"
TAGGED = "00000001 00000005 02 09 02 aabb 0a 00        CurrentLeader: two tagged fields"


@pytest.mark.parametrize("acknowledge_message", ["06 'stale'", "00"])
def test_tagged_fields_of_a_leader_are_skipped(acknowledge_message: str) -> None:
    tagged = RESPONSE.replace(LEADER, TAGGED)
    assert tagged != RESPONSE

    response = from_hex(tagged.replace("06 'stale'", acknowledge_message))
    first, second = read_response(response).partitions

    message = None if acknowledge_message == "00" else "stale"
    assert replace(FIRST, acknowledge_message=message) == first
    assert SECOND == second


def test_negative_lock_timeout_is_zero() -> None:
    response = from_hex(RESPONSE).replace(b"\x00\x00\x75\x30", b"\xff\xff\xff\xff")

    assert 0.0 == read_response(response).lock_timeout


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, 0), (0.0004, 1), (0.0015, 2), (0.035, 35), (1e9, 0x7FFFFFFF)],
)
def test_max_wait_is_rounded_up_and_limited_to_an_int32(
    seconds: float, expected: int
) -> None:
    request = ShareFetch(
        group_id="g",
        member_id="m",
        share_session_epoch=0,
        max_wait=seconds,
        min_bytes=1,
        max_bytes=1,
        max_records=1,
        record_limit=False,
        added=frozenset(),
        forgotten=frozenset(),
        acknowledgements={},
    )

    got = decode_entity(
        schema("share_fetch", 2).ShareFetchRequest, SHARE_FETCH.write(request, 2)
    )

    assert timedelta(milliseconds=expected) == got.max_wait
