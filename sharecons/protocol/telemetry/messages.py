"""Requests and responses of client telemetry (KIP-714).

Plain values with the KIP's names; times are seconds. `sharecons.wire` encodes and
decodes them.
"""

from dataclasses import dataclass
from uuid import UUID

__all__ = [
    "GetTelemetrySubscriptions",
    "GetTelemetrySubscriptionsResponse",
    "PushTelemetry",
    "PushTelemetryResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTelemetrySubscriptions:
    """GetTelemetrySubscriptions; the id is None until a broker has assigned one."""

    client_instance_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTelemetrySubscriptionsResponse:
    """The metrics that a broker wants.

    Attributes:
        client_instance_id: the id of this client; None in a response with an error.
        compression_types: the codecs that the broker accepts, the preferred one first,
            with the numbers that record batches have.
        push_interval: seconds between two pushes.
        max_bytes: the largest payload of a push, before and after compression.
        delta_temporality: whether counters are differences since the previous push.
        requested_metrics: prefixes of names; ("*",) are all metrics, () is none.
    """

    error: int
    client_instance_id: UUID | None
    subscription_id: int
    compression_types: tuple[int, ...]
    push_interval: float
    max_bytes: int
    delta_temporality: bool
    requested_metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTelemetry:
    """PushTelemetry; `metrics` is OpenTelemetry's MetricsData v1, compressed."""

    client_instance_id: UUID
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTelemetryResponse:
    """PushTelemetry's response."""

    error: int
