"""Bytes that are no response: ProtocolError, and nothing else, for every API.

kio reserves memory for as many elements as the count of an array, and aborts the
process if the system has less memory. This must not happen either.
"""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.wire.api_versions import read_versions
from sharecons.wire.consumer_apis import APIS
from sharecons.wire.get_telemetry_subscriptions import GET_TELEMETRY_SUBSCRIPTIONS
from sharecons.wire.push_telemetry import PUSH_TELEMETRY
from tests.wire.oracle import encode_entity, from_hex, read_as_bytes_and_view, schema

TOPIC = UUID("00112233-4455-6677-8899-aabbccddeeff")
SECOND = timedelta(seconds=1)


def consumer_responses():
    """Yield a response of each API and version, with every field set."""
    for version in (1, 2):
        v = schema("share_fetch", version).response
        leader = v.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
        node = v.NodeEndpoint(node_id=1, host="h", port=9092, rack="r")
        partition = v.PartitionData(
            partition_index=0,
            error_code=ErrorCode.none,
            error_message="m",
            acknowledge_error_code=0,
            current_leader=leader,
            records=b"some records",
            acquired_records=tuple(
                v.AcquiredRecords(first_offset=i, last_offset=i, delivery_count=1)
                for i in range(3)
            ),
        )
        topic = v.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=(partition,))
        yield (
            v.ShareFetchResponse(
                throttle_time=SECOND,
                error_code=ErrorCode.none,
                acquisition_lock_timeout=SECOND,
                responses=(topic, topic),
                node_endpoints=(node,),
            ),
            version,
        )
        v = schema("share_acknowledge", version).response
        leader = v.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
        partition = v.PartitionData(
            partition_index=0, error_code=ErrorCode.none, current_leader=leader
        )
        topic = v.ShareAcknowledgeTopicResponse(topic_id=TOPIC, partitions=(partition,))
        node = v.NodeEndpoint(node_id=1, host="h", port=9092, rack="r")
        lock = {"acquisition_lock_timeout": SECOND} if version == 2 else {}
        yield (
            v.ShareAcknowledgeResponse(
                throttle_time=SECOND,
                error_code=ErrorCode.none,
                responses=(topic,),
                node_endpoints=(node,),
                **lock,
            ),
            version,
        )
    v = schema("share_group_heartbeat", 1).response
    assigned = v.TopicPartitions(topic_id=TOPIC, partitions=(0, 1))
    yield (
        v.ShareGroupHeartbeatResponse(
            throttle_time=SECOND,
            error_code=ErrorCode.none,
            member_id="m",
            member_epoch=1,
            heartbeat_interval=SECOND,
            assignment=v.Assignment(topic_partitions=(assigned,)),
        ),
        1,
    )
    for version in (4, 5, 6):
        v = schema("find_coordinator", version).response
        coordinator = v.Coordinator(
            key="g",
            node_id=1,
            host="h",
            port=9092,
            error_code=ErrorCode.none,
            error_message=None,
        )
        yield (
            v.FindCoordinatorResponse(
                throttle_time=SECOND, coordinators=(coordinator,)
            ),
            version,
        )
    v = schema("sasl_handshake", 1).response
    yield (
        v.SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=("PLAIN", "X")),
        1,
    )
    v = schema("sasl_authenticate", 2).response
    yield (
        v.SaslAuthenticateResponse(
            error_code=ErrorCode.none,
            error_message="m",
            auth_bytes=b"bytes",
            session_lifetime=SECOND,
        ),
        2,
    )
    for version in (12, 13):
        v = schema("metadata", version).response
        partition = v.MetadataResponsePartition(
            error_code=ErrorCode.none,
            partition_index=0,
            leader_id=1,
            replica_nodes=(1, 2),
        )
        topic = v.MetadataResponseTopic(
            error_code=ErrorCode.none,
            name="orders",
            topic_id=TOPIC,
            partitions=(partition, partition),
        )
        broker = v.MetadataResponseBroker(node_id=1, host="h", port=9092)
        code = {"error_code": ErrorCode.none} if version == 13 else {}
        yield (
            v.MetadataResponse(
                throttle_time=SECOND, brokers=(broker,), topics=(topic,), **code
            ),
            version,
        )
    v = schema("describe_configs", 4).response
    synonym = v.DescribeConfigsSynonym(name="s", value="v", source=1)
    config = v.DescribeConfigsResourceResult(
        name="n",
        value="v",
        read_only=False,
        is_sensitive=False,
        synonyms=(synonym,),
        documentation=None,
    )
    result = v.DescribeConfigsResult(
        error_code=ErrorCode.none,
        error_message=None,
        resource_type=32,
        resource_name="g",
        configs=(config,),
    )
    yield v.DescribeConfigsResponse(throttle_time=SECOND, results=(result,)), 4
    v = schema("incremental_alter_configs", 1).response
    result = v.AlterConfigsResourceResponse(
        error_code=ErrorCode.none,
        error_message=None,
        resource_type=32,
        resource_name="g",
    )
    yield (
        v.IncrementalAlterConfigsResponse(throttle_time=SECOND, responses=(result,)),
        1,
    )
    v = schema("get_telemetry_subscriptions", 0).response
    yield (
        v.GetTelemetrySubscriptionsResponse(
            throttle_time=SECOND,
            error_code=ErrorCode.none,
            client_instance_id=UUID(int=7),
            subscription_id=1,
            accepted_compression_types=(4, 3),
            push_interval=SECOND,
            telemetry_max_bytes=1 << 20,
            delta_temporality=True,
            requested_metrics=("*",),
        ),
        0,
    )
    v = schema("push_telemetry", 0).response
    pushed = v.PushTelemetryResponse(throttle_time=SECOND, error_code=ErrorCode.none)
    yield pushed, 0
    for version in (0, 3):
        v = schema("api_versions", version).response
        api = v.ApiVersion(api_key=78, min_version=1, max_version=2)
        if version == 0:
            code, more = ErrorCode.unsupported_version, {}
        else:
            feature = v.FinalizedFeatureKey(
                name="f", max_version_level=1, min_version_level=1
            )
            code = ErrorCode.none
            more = {"throttle_time": SECOND, "finalized_features": (feature,)}
        yield v.ApiVersionsResponse(error_code=code, api_keys=(api,), **more), version


ALL = (*APIS.values(), GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY)
BY_KEY = {api.key: api for api in ALL}


def read(entity, version, data):
    if entity.__api_key__ == 18:
        return read_versions(data, 0)
    api = BY_KEY[entity.__api_key__]
    if entity.__api_key__ == 78:
        return read_as_bytes_and_view(lambda frame: api.read(frame, 0, version), data)
    return api.read(data, 0, version)


every_response = pytest.mark.parametrize(
    ("entity", "version"),
    [
        pytest.param(entity, version, id=f"{type(entity).__name__}-{version}")
        for entity, version in consumer_responses()
    ],
)


def test_every_api_and_version_has_a_response():
    spoken = {(api.key, version) for api in ALL for version in api.versions}

    known = {(entity.__api_key__, version) for entity, version in consumer_responses()}
    assert spoken | {(18, 0), (18, 3)} == known


@every_response
def test_complete_response_is_decoded(entity, version):
    read(entity, version, encode_entity(entity))


@every_response
def test_truncated_response_is_rejected(entity, version):
    data = encode_entity(entity)

    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            read(entity, version, data[:length])


@every_response
def test_bytes_after_a_response_are_rejected(entity, version):
    with pytest.raises(ProtocolError, match="1 bytes after its end"):
        read(entity, version, encode_entity(entity) + b"\x00")


@every_response
def test_response_with_a_changed_byte_is_decoded_or_rejected(entity, version):
    """Some changes result in a valid response; all others raise ProtocolError."""
    data = encode_entity(entity)

    for position in range(len(data)):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            changed = data[:position] + bytes((byte,)) + data[position + 1 :]
            _read_or_protocol_error(entity, version, changed)


@every_response
@given(data=st.binary(max_size=200))
@example(data=b"\xff" * 200)
@example(data=b"\x00" * 200)
def test_random_bytes(entity, version, data):
    _read_or_protocol_error(entity, version, data)


@every_response
@given(data=st.data())
def test_response_with_replaced_bytes_is_decoded_or_rejected(entity, version, data):
    whole = encode_entity(entity)
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    piece = data.draw(st.binary(max_size=8))

    _read_or_protocol_error(entity, version, whole[:start] + piece + whole[stop:])


def _read_or_protocol_error(entity, version, data):
    try:
        read(entity, version, data)
    except ProtocolError:
        pass


@pytest.mark.parametrize(
    "count", ["ffffffff0f", "ffffffff07", "ffffff7f", "8080808001"]
)
def test_count_above_the_number_of_bytes_is_rejected(count):
    # Without `kio_guard`, kio aborts the process for the first of these.
    response = from_hex("00000000 0000 00 00007530" + count + "01 00")

    with pytest.raises(ProtocolError):
        BY_KEY[78].read(response, 0, 2)


def test_count_above_the_number_of_bytes_is_rejected_in_the_legacy_format():
    with pytest.raises(ProtocolError):
        read_versions(from_hex("0023 7fffffff"), 0)


def test_varint_that_does_not_end_is_rejected():
    with pytest.raises(ProtocolError):
        BY_KEY[78].read(from_hex("00000000 0000 00 00007530 ffffffffffff01"), 0, 2)


def test_text_that_is_not_utf_8_is_rejected():
    with pytest.raises(ProtocolError):
        BY_KEY[78].read(from_hex("00000000 0000 02 ff 00007530 01 01 00"), 0, 2)


@pytest.mark.parametrize("version", [1, 2])
def test_tagged_fields_of_newer_brokers_are_skipped(version):
    """Put tagged fields of several numbers and sizes into every struct."""
    tags = "03 00 01 ff 7f 00 ac02 02 abcd"
    plain = """
        00000000 0000 00 00007530                     throttle, error, message, lock
        02 00112233445566778899aabbccddeeff           one topic
          02 00000000 0000 00 0000 00                 one partition
            00000001 00000005 TAGS                    leader
            04 'xyz'                                  records
            03 000000000000000a 000000000000000c 0001 TAGS
               000000000000000e 000000000000000e 0003 TAGS
          TAGS
        TAGS
        02 00000003 02 'b' 00002384 00 TAGS           node endpoints
        TAGS
    """

    def response(instead):
        return BY_KEY[78].read(from_hex(plain.replace("TAGS", instead)), 0, version)

    assert response("00") == response(tags)
