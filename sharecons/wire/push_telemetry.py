"""PushTelemetry (72): sends metrics to a broker (KIP-714)."""

from importlib import import_module
from typing import Any

from sharecons.protocol.telemetry.messages import PushTelemetry, PushTelemetryResponse
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity

__all__ = ["PUSH_TELEMETRY"]

v0: Any = import_module("kio.schema.push_telemetry.v0")


def _write(request: PushTelemetry, version: int) -> bytes:
    return write_entity(
        v0.PushTelemetryRequest(
            client_instance_id=request.client_instance_id,
            subscription_id=request.subscription_id,
            terminating=request.terminating,
            compression_type=request.compression_type,
            metrics=request.metrics,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> PushTelemetryResponse:
    response = read_entity(v0.PushTelemetryResponse, frame, offset)
    return PushTelemetryResponse(error=int(response.error_code))


PUSH_TELEMETRY: Api[PushTelemetry, PushTelemetryResponse] = Api(
    key=72, name="PushTelemetry", versions=range(1), write=_write, read=_read
)
