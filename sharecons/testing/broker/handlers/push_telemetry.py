"""PushTelemetry 0 (KIP-714): keeps the metrics of a client for the test."""

import zlib

import cramjam

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.handlers.get_telemetry_subscriptions import labels_of
from sharecons.testing.broker.log.records import DECOMPRESSORS
from sharecons.testing.broker.telemetry import Push, TelemetryError

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    if request.client_instance_id is None:
        return {"error_code": ErrorCode.invalid_request}
    push = Push(
        client_instance_id=request.client_instance_id,
        client_id=context.header.client_id,
        terminating=request.terminating,
        compression_type=request.compression_type,
        data=request.metrics,
        at=context.now,
    )
    telemetry = context.cluster.telemetry
    try:
        telemetry.check(push, request.subscription_id, labels_of(context))
        data = DECOMPRESSORS[push.compression_type](push.data)
        if len(data) > telemetry.max_bytes:
            raise ValueError("larger than telemetry.max.bytes after decompression")
    except TelemetryError as error:
        return {"error_code": error.code}
    except (cramjam.DecompressionError, ValueError, zlib.error):
        return {"error_code": ErrorCode.invalid_record}
    telemetry.pushes.append(push._replace(data=data))
    return {}
