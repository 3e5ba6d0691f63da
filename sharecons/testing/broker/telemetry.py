"""Client telemetry (KIP-714): subscriptions of brokers, and pushes of clients.

The rules are the same as in `ClientMetricsManager` of Kafka 4.4. One state serves all
brokers. A subscription's `match` knows all labels but `client_source_port`.
"""

import re
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.configs import Configs
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.settings.client_metrics import (
    INTERVAL,
    MATCH,
    METRICS,
    patterns_of,
)
from sharecons.testing.broker.settings.setting import split_list

__all__ = [
    "ALL_METRICS",
    "COMPRESSION_TYPES",
    "Instance",
    "Push",
    "Telemetry",
    "TelemetryError",
    "values_of",
]

ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000

COMPRESSION_TYPES: Final = (4, 3, 1, 2)
"""zstd, lz4, gzip and snappy, in Kafka's order."""

UNCOMPRESSED: Final = 0
RETRIED: Final = (
    ErrorCode.unknown_subscription_id,
    ErrorCode.unsupported_compression_type,
)
"""After these errors a client requests its subscription at any time."""


class TelemetryError(RequestError):
    """A request is rejected."""


class Push(NamedTuple):
    """A push that the brokers have accepted.

    Attributes:
        data: OpenTelemetry's MetricsData v1, decompressed.
        at: seconds on the clock of the broker's event loop.
    """

    client_instance_id: uuid.UUID
    client_id: str
    terminating: bool
    compression_type: int
    data: bytes
    at: float

    @property
    def values(self) -> Mapping[str, float]:
        """The values by the names of metrics; needs opentelemetry-proto."""
        return values_of(self.data)


def values_of(data: bytes) -> Mapping[str, float]:
    """Return the values of MetricsData v1 by the names of metrics."""
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    return {
        metric.name: point.as_double
        for of_client in MetricsData.FromString(data).resource_metrics
        for in_scope in of_client.scope_metrics
        for metric in in_scope.metrics
        for point in (*metric.sum.data_points, *metric.gauge.data_points)
    }


@dataclass(slots=True)
class Instance:
    """One client that has requested its subscription."""

    client_instance_id: uuid.UUID
    labels: Mapping[str, str]
    version: int
    """The version of all subscriptions at which this one was chosen."""
    metrics: tuple[str, ...] = ()
    interval_ms: int = DEFAULT_INTERVAL_MS
    requested_at: float = float("-inf")
    pushed_at: float = float("-inf")
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.none

    @property
    def subscription_id(self) -> int:
        """A checksum of what is subscribed, and of the client."""
        text = f"{','.join(self.metrics)} {self.interval_ms} {self.client_instance_id}"
        return zlib.crc32(text.encode()) & 0x7FFFFFFF


@dataclass(slots=True)
class Telemetry:
    """The subscriptions of a cluster, its clients, and their pushes.

    Attributes:
        is_enabled: whether brokers announce the APIs, as those with a ClientTelemetry
            reporter do.
        pushes: in the order in which they came.
    """

    configs: Configs
    is_enabled: bool = False
    pushes: list[Push] = field(default_factory=list)
    _instances: dict[uuid.UUID, Instance] = field(default_factory=dict)

    def subscribe(
        self, given: uuid.UUID | None, labels: Mapping[str, str], now: float
    ) -> Instance:
        """Return what a client shall push.

        Raises:
            TelemetryError: the push interval has not passed.
        """
        instance = self._instance(given or uuid.uuid4(), labels)
        since = max(instance.requested_at, instance.pushed_at)
        if _has_passed(instance, since, now):
            instance.requested_at = now
        elif instance.last_error not in RETRIED:
            raise TelemetryError(ErrorCode.throttling_quota_exceeded)
        instance.last_error = ErrorCode.none
        return instance

    def check(
        self, push: Push, subscription_id: int, labels: Mapping[str, str]
    ) -> None:
        """Check whether the broker accepts a push.

        Args:
            push: with its data as in the request.

        Raises:
            TelemetryError: the broker rejects it.
        """
        instance = self._instance(push.client_instance_id, labels)
        try:
            self._check_push(instance, push, subscription_id)
        except TelemetryError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating |= push.terminating
        instance.last_error = ErrorCode.none

    def _check_push(self, instance: Instance, push: Push, subscription_id: int) -> None:
        if instance.is_terminating:
            raise TelemetryError(ErrorCode.invalid_request)
        is_first = instance.requested_at > instance.pushed_at
        if is_first or _has_passed(instance, instance.pushed_at, push.at):
            instance.pushed_at = push.at
        elif not push.terminating:
            raise TelemetryError(ErrorCode.throttling_quota_exceeded)
        if subscription_id != instance.subscription_id:
            raise TelemetryError(ErrorCode.unknown_subscription_id)
        if push.compression_type not in (UNCOMPRESSED, *COMPRESSION_TYPES):
            raise TelemetryError(ErrorCode.unsupported_compression_type)
        if len(push.data) > self.max_bytes:
            raise TelemetryError(ErrorCode.telemetry_too_large)

    @property
    def max_bytes(self) -> int:
        return int(self.configs.broker_value("telemetry.max.bytes"))

    def _instance(
        self, client_instance_id: uuid.UUID, labels: Mapping[str, str]
    ) -> Instance:
        """Return a client; a new one if it is unknown or subscriptions have changed."""
        version = self.configs.client_metrics_version
        found = self._instances.get(client_instance_id)
        if found is not None and found.version == version:
            return found
        labels = {**labels, "client_instance_id": str(client_instance_id)}
        instance = Instance(client_instance_id, labels, version)
        self._choose(instance)
        self._instances[client_instance_id] = instance
        return instance

    def _choose(self, instance: Instance) -> None:
        metrics: dict[str, None] = {}
        intervals = []
        for name in self.configs.client_metrics:
            if self._matches(name, instance.labels):
                value = self.configs.client_metrics_value
                metrics |= dict.fromkeys(split_list(value(name, METRICS)))
                intervals.append(int(value(name, INTERVAL)))
        instance.metrics = (ALL_METRICS,) if ALL_METRICS in metrics else (*metrics,)
        instance.interval_ms = min(intervals, default=DEFAULT_INTERVAL_MS)

    def _matches(self, name: str, labels: Mapping[str, str]) -> bool:
        patterns = patterns_of(self.configs.client_metrics_value(name, MATCH))
        return all(
            re.fullmatch(pattern, labels.get(label, ""))
            for label, pattern in patterns.items()
        )


def _has_passed(instance: Instance, since: float, now: float) -> bool:
    return now - since >= instance.interval_ms / 1000
