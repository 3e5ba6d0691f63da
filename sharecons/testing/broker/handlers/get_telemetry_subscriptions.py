"""GetTelemetrySubscriptions 0 (KIP-714): the metrics that a client shall push."""

from sharecons.testing.broker.codec import Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.telemetry import COMPRESSION_TYPES, TelemetryError

__all__ = ["handle", "labels_of"]


async def handle(request: Request, context: Context) -> Response:
    telemetry = context.cluster.telemetry
    try:
        instance = telemetry.subscribe(
            request.client_instance_id, labels_of(context), context.now
        )
    except TelemetryError as error:
        return {"error_code": error.code}
    return {
        "client_instance_id": instance.client_instance_id,
        "subscription_id": instance.subscription_id,
        "accepted_compression_types": COMPRESSION_TYPES,
        "push_interval": instance.interval_ms / 1000,
        "telemetry_max_bytes": telemetry.max_bytes,
        "delta_temporality": True,
        "requested_metrics": instance.metrics,
    }


def labels_of(context: Context) -> dict[str, str]:
    """Return the labels of a client that `match` can select."""
    software, version = context.connection.software
    return {
        "client_id": context.header.client_id,
        "client_software_name": software,
        "client_software_version": version,
        "client_source_address": context.connection.peer.removeprefix("/"),
    }
