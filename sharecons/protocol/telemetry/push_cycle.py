"""`PushCycle`: requests what a broker wants to know, and says when to push it.

The rules are the same as in Kafka's Java client 4.4 (`ClientTelemetryReporter`);
KIP-714 has the reasons. The cycle:

1. Request the subscription; the first time without an id, later with the assigned one.
2. If no metrics are wanted, request it again after the push interval.
3. Else push after 0.5 to 1.5 intervals, which spreads the clients that a broker's
   start has brought together, then after each interval.
4. An error of either request leads back to 1, after a delay or never. See `_DELAYS`.
5. Closing pushes once more, with `terminating`, if metrics were wanted.

This machine differs from the Java client in two ways. A broker that rejects a request
twice with an error that allows an immediate request receives the next one after an
interval, so that no error repeats in a tight loop. And a codec that a broker has
rejected is not used again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, final
from uuid import UUID

from sharecons.errors import AuthenticationError, Error, UnsupportedVersionError
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.telemetry.messages import (
    GetTelemetrySubscriptions,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryResponse,
)

__all__ = ["DEFAULT_INTERVAL", "Push", "PushCycle", "Subscription"]

DEFAULT_INTERVAL: Final = 300.0
"""Seconds: the push interval without a subscription, and after a failed request."""

MIN_INTERVAL: Final = 0.1
"""Seconds: the smallest interval that Kafka lets a subscription have."""

ALL_METRICS: Final = ("*",)

UNCOMPRESSED: Final = 0

KNOWN_COMPRESSION: Final = frozenset((1, 2, 3, 4))
"""gzip, snappy, lz4 and zstd, as in record batches."""


class _Delay(Enum):
    """When an error allows the next request."""

    NONE = auto()
    INTERVAL = auto()
    FOREVER = auto()


_DELAYS: Final[Mapping[int, _Delay]] = {
    Code.UNKNOWN_SUBSCRIPTION_ID: _Delay.NONE,
    Code.UNSUPPORTED_COMPRESSION_TYPE: _Delay.NONE,
    Code.TELEMETRY_TOO_LARGE: _Delay.INTERVAL,
    Code.THROTTLING_QUOTA_EXCEEDED: _Delay.INTERVAL,
    Code.INVALID_REQUEST: _Delay.FOREVER,
    Code.INVALID_RECORD: _Delay.FOREVER,
    Code.UNSUPPORTED_VERSION: _Delay.FOREVER,
}
"""The error table; any other code is FOREVER, as in the Java client."""

_LASTING: Final = (UnsupportedVersionError, AuthenticationError)
"""Errors of a request that do not pass; brokers ban clients that authenticate again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """The metrics that a broker wants, and how.

    Attributes:
        subscription_id: goes into each push, so that a broker notices an old one.
        compression: the codec of a push, as in record batches.
        interval: seconds between two pushes.
        max_bytes: the largest payload, compressed or not; 0 if there is no limit.
        is_delta: counters are differences since the previous push.
    """

    subscription_id: int
    compression: int
    interval: float
    max_bytes: int
    is_delta: bool
    prefixes: tuple[str, ...]

    def selects(self, name: str) -> bool:
        """Return whether the metric of this name is wanted."""
        return self.prefixes == ALL_METRICS or name.startswith(self.prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A push that is due; the caller adds the metrics and sends a PushTelemetry."""

    client_instance_id: UUID
    subscription: Subscription
    terminating: bool


@final
class PushCycle:
    """The subscription of one client, as a machine of `sharecons.protocol`.

    Args:
        spread: 0.0 to 1.0, which decides the first push: after 0.5 to 1.5 intervals.

    Attributes:
        client_instance_id: assigned by the first broker that responds; else None.
        subscription: the metrics to push; None while no broker subscribes.
        stop_reason: why nothing will be requested any more; "" if it is not so.
    """

    def __init__(self, spread: float) -> None:
        self.client_instance_id: UUID | None = None
        self.subscription: Subscription | None = None
        self.stop_reason = ""
        self._spread = spread
        self._due = 0.0
        self._interval = DEFAULT_INTERVAL
        self._is_requesting = True
        self._is_closing = False
        self._repeats_once = True
        self._pushed_at = -math.inf
        self._rejected_codecs: set[int] = set()

    @property
    def finished(self) -> bool:
        """True once no request will follow."""
        return bool(self.stop_reason) or (
            self._is_closing and self.subscription is None
        )

    def close(self) -> None:
        """Push once more if metrics are wanted, then finish."""
        self._is_closing = True
        if self._is_requesting:
            self.subscription = None

    def next_request(self, now: float) -> GetTelemetrySubscriptions | Push | None:
        """Return the request to send now, or None."""
        if self.finished:
            return None
        if self._is_closing:
            return self._push(terminating=True)
        if now < self._due:
            return None
        if self._is_requesting:
            return GetTelemetrySubscriptions(client_instance_id=self.client_instance_id)
        return self._push(terminating=False)

    def next_deadline(self, now: float) -> float:
        """Return when a request is due."""
        if self.finished:
            return math.inf
        return now if self._is_closing else self._due

    def on_response(
        self,
        request: GetTelemetrySubscriptions | Push,
        response: GetTelemetrySubscriptionsResponse | PushTelemetryResponse,
        now: float,
    ) -> None:
        """Follow a subscription, or the error of a response."""
        if isinstance(request, Push):
            self._pushed_at = now
        if isinstance(request, Push) and request.terminating:
            self.subscription = None
        elif response.error and not self._is_followed_by_the_last(request):
            self._on_error_code(request, response.error, now)
        elif isinstance(response, GetTelemetrySubscriptionsResponse):
            self._on_subscription(response, now)
        else:
            self._repeats_once = True
            self._due = now + self._interval

    def on_error(
        self, request: GetTelemetrySubscriptions | Push, error: Error, now: float
    ) -> None:
        """Request again in five minutes, unless the error lasts."""
        if isinstance(request, Push) and request.terminating:
            self.subscription = None
        elif isinstance(error, _LASTING):
            self.stop(str(error))
        elif not self._is_followed_by_the_last(request):
            self._request_at(now + DEFAULT_INTERVAL)

    def stop(self, reason: str) -> None:
        """Request nothing any more."""
        self.subscription = None
        self.stop_reason = reason

    def _is_followed_by_the_last(
        self, request: GetTelemetrySubscriptions | Push
    ) -> bool:
        """Return whether the last push repeats what this request has not delivered."""
        return self._is_closing and isinstance(request, Push)

    def _push(self, *, terminating: bool) -> Push:
        assert self.client_instance_id is not None, "a subscription comes with an id"
        assert self.subscription is not None, "not finished"
        return Push(
            client_instance_id=self.client_instance_id,
            subscription=self.subscription,
            terminating=terminating,
        )

    def _on_subscription(
        self, response: GetTelemetrySubscriptionsResponse, now: float
    ) -> None:
        if response.client_instance_id is not None:
            self.client_instance_id = response.client_instance_id
        if self.client_instance_id is None:
            self.stop("the broker assigned no client instance id")
            return
        self._interval = _valid_interval(response.push_interval)
        if self._is_closing or not response.requested_metrics:
            self._request_at(now + self._interval)
            return
        self.subscription = Subscription(
            subscription_id=response.subscription_id,
            compression=self._choose_codec(response.compression_types),
            interval=self._interval,
            max_bytes=max(0, response.max_bytes),
            is_delta=response.delta_temporality,
            prefixes=response.requested_metrics,
        )
        self._is_requesting = False
        # A push that was rejected because the subscription has changed counts for the
        # broker's quota (4.4).
        first_push = now + self._interval * (0.5 + self._spread)
        self._due = max(first_push, self._pushed_at + self._interval)

    def _choose_codec(self, accepted: tuple[int, ...]) -> int:
        usable = KNOWN_COMPRESSION - self._rejected_codecs
        return next((codec for codec in accepted if codec in usable), UNCOMPRESSED)

    def _on_error_code(
        self, request: GetTelemetrySubscriptions | Push, code: int, now: float
    ) -> None:
        if isinstance(request, Push) and code == Code.UNSUPPORTED_COMPRESSION_TYPE:
            self._rejected_codecs.add(request.subscription.compression)
        delay = _DELAYS.get(code, _Delay.FOREVER)
        if delay is _Delay.NONE and self._repeats_once:
            self._repeats_once = False
            self._request_at(now)
        elif delay is _Delay.FOREVER:
            self.stop(f"the broker responded {code_name(code)}")
        else:
            self._request_at(now + self._interval)

    def _request_at(self, due: float) -> None:
        self.subscription = None
        self._is_requesting = True
        self._due = due


def _valid_interval(seconds: float) -> float:
    """Return the interval of a response; the default if it is invalid."""
    return max(seconds, MIN_INTERVAL) if seconds > 0.0 else DEFAULT_INTERVAL
