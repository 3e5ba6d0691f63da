"""GetTelemetrySubscriptions (71): the metrics that a broker wants (KIP-714)."""

from importlib import import_module
from typing import Any

from sharecons.protocol.telemetry.messages import (
    GetTelemetrySubscriptions,
    GetTelemetrySubscriptionsResponse,
)
from sharecons.wire.codec.api import Api, Frame, read_entity, seconds, write_entity

__all__ = ["GET_TELEMETRY_SUBSCRIPTIONS"]

v0: Any = import_module("kio.schema.get_telemetry_subscriptions.v0")


def _write(request: GetTelemetrySubscriptions, version: int) -> bytes:
    return write_entity(
        v0.GetTelemetrySubscriptionsRequest(
            client_instance_id=request.client_instance_id  # None is the zero UUID
        )
    )


def _read(frame: Frame, offset: int, version: int) -> GetTelemetrySubscriptionsResponse:
    response = read_entity(v0.GetTelemetrySubscriptionsResponse, frame, offset)
    return GetTelemetrySubscriptionsResponse(
        error=int(response.error_code),
        client_instance_id=response.client_instance_id,
        subscription_id=response.subscription_id,
        compression_types=tuple(response.accepted_compression_types),
        push_interval=seconds(response.push_interval),
        max_bytes=response.telemetry_max_bytes,
        delta_temporality=response.delta_temporality,
        requested_metrics=tuple(response.requested_metrics),
    )


GET_TELEMETRY_SUBSCRIPTIONS: Api[
    GetTelemetrySubscriptions, GetTelemetrySubscriptionsResponse
] = Api(
    key=71,
    name="GetTelemetrySubscriptions",
    versions=range(1),
    write=_write,
    read=_read,
)
