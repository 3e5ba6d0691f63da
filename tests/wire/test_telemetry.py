"""GetTelemetrySubscriptions (71) and PushTelemetry (72), both version 0."""

import dataclasses
from datetime import timedelta
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.telemetry.messages import (
    GetTelemetrySubscriptions,
    GetTelemetrySubscriptionsResponse,
    PushTelemetry,
    PushTelemetryResponse,
)
from sharecons.wire.codec.registry import api_of
from sharecons.wire.get_telemetry_subscriptions import GET_TELEMETRY_SUBSCRIPTIONS
from sharecons.wire.push_telemetry import PUSH_TELEMETRY
from tests.wire.oracle import (
    decode_entity,
    encode_entity,
    from_hex,
    read_as_bytes_and_view,
    schema,
)

CLIENT = UUID("00112233-4455-6677-8899-aabbccddeeff")
FIRST_BYTES = """
    00000000000000000000000000000000  ClientInstanceId: none yet
    00                                (tagged fields)
"""
NEXT_BYTES = """
    00112233445566778899aabbccddeeff  ClientInstanceId
    00                                (tagged fields)
"""
SUBSCRIBED = """
    00000000                          ThrottleTimeMs
    0000                              ErrorCode
    00112233445566778899aabbccddeeff  ClientInstanceId
    0000002a                          SubscriptionId: 42
    03 04 01                          AcceptedCompressionTypes: zstd, gzip
    0000ea60                          PushIntervalMs: 60,000
    00100000                          TelemetryMaxBytes: 1 MiB
    01                                DeltaTemporality
    02                                RequestedMetrics: one
      02 '*'
    00                                (tagged fields)
"""
REJECTED = """
    00000000                          ThrottleTimeMs
    0059                              ErrorCode, throttling quota exceeded
    00000000000000000000000000000000  ClientInstanceId: none
    00000000                          SubscriptionId
    01                                AcceptedCompressionTypes: none
    00000000                          PushIntervalMs
    00000000                          TelemetryMaxBytes
    00                                DeltaTemporality
    01                                RequestedMetrics: none
    00                                (tagged fields)
"""
PUSH = PushTelemetry(
    client_instance_id=CLIENT,
    subscription_id=-7,
    terminating=True,
    compression_type=4,
    metrics=b"abc",
)
PUSH_BYTES = """
    00112233445566778899aabbccddeeff  ClientInstanceId
    fffffff9                          SubscriptionId: -7
    01                                Terminating
    04                                CompressionType: zstd
    04 'abc'                          Metrics
    00                                (tagged fields)
"""
PUSHED = """
    00000000                          ThrottleTimeMs
    0076                              ErrorCode, telemetry too large
    00                                (tagged fields)
"""


def test_first_request_has_the_zero_id():
    request = GetTelemetrySubscriptions(client_instance_id=None)

    assert from_hex(FIRST_BYTES) == GET_TELEMETRY_SUBSCRIPTIONS.write(request, 0)


def test_later_request_has_the_assigned_id():
    request = GetTelemetrySubscriptions(client_instance_id=CLIENT)

    assert from_hex(NEXT_BYTES) == GET_TELEMETRY_SUBSCRIPTIONS.write(request, 0)


def read_subscriptions(data):
    return read_as_bytes_and_view(
        lambda frame: GET_TELEMETRY_SUBSCRIPTIONS.read(frame, 0, 0), data
    )


def test_response_with_a_subscription():
    expected = GetTelemetrySubscriptionsResponse(
        error=0,
        client_instance_id=CLIENT,
        subscription_id=42,
        compression_types=(4, 1),
        push_interval=60.0,
        max_bytes=1 << 20,
        delta_temporality=True,
        requested_metrics=("*",),
    )

    assert expected == read_subscriptions(from_hex(SUBSCRIBED))


def test_response_with_an_error_has_no_id():
    response = read_subscriptions(from_hex(REJECTED))

    assert 89 == response.error
    assert response.client_instance_id is None
    assert () == response.requested_metrics


def test_subscriptions_encoded_by_kio_are_decoded():
    v0 = schema("get_telemetry_subscriptions", 0).response
    entity = v0.GetTelemetrySubscriptionsResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        client_instance_id=CLIENT,
        subscription_id=-1,
        accepted_compression_types=(3, 2, 9),
        push_interval=timedelta(milliseconds=100),
        telemetry_max_bytes=7,
        delta_temporality=False,
        requested_metrics=("org.apache.kafka.a", ""),
    )

    response = read_subscriptions(encode_entity(entity))

    assert (3, 2, 9) == response.compression_types
    assert 0.1 == response.push_interval
    assert ("org.apache.kafka.a", "") == response.requested_metrics
    assert not response.delta_temporality


def test_push_request():
    assert from_hex(PUSH_BYTES) == PUSH_TELEMETRY.write(PUSH, 0)


def test_kio_decodes_the_push_request():
    v0 = schema("push_telemetry", 0).request

    entity = decode_entity(v0.PushTelemetryRequest, PUSH_TELEMETRY.write(PUSH, 0))

    assert dataclasses.asdict(PUSH) == dataclasses.asdict(entity)


def test_push_response():
    got = read_as_bytes_and_view(
        lambda frame: PUSH_TELEMETRY.read(frame, 0, 0), from_hex(PUSHED)
    )

    assert PushTelemetryResponse(error=118) == got


@pytest.mark.parametrize("lines", [SUBSCRIBED, REJECTED], ids=["wanted", "error"])
def test_every_truncation_of_the_subscriptions_is_rejected(lines):
    data = from_hex(lines)
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            GET_TELEMETRY_SUBSCRIPTIONS.read(data[:size], 0, 0)


def test_both_apis_are_found_by_their_requests():
    assert api_of(GetTelemetrySubscriptions) is GET_TELEMETRY_SUBSCRIPTIONS
    assert api_of(PushTelemetry) is PUSH_TELEMETRY
