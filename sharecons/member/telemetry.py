"""The task of a member that pushes its metrics to brokers (KIP-714).

`sharecons.protocol.telemetry` decides when, `sharecons.metrics.push_payload` what. The
requests go to any broker, over the connection that the metadata has. A broker without
client telemetry costs nothing: this module is not loaded. One without a subscription
costs a request per push interval, five minutes by default.
"""

import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, final
from uuid import UUID

import anyio
from anyio.abc import TaskGroup

from sharecons.daemon_threads import call_in_daemon_thread
from sharecons.errors import RequestTimedOutError
from sharecons.log import get_logger
from sharecons.member.drive import drive
from sharecons.metrics.application_metrics import ApplicationMetrics
from sharecons.metrics.catalog import values_of
from sharecons.metrics.push_payload import Encode, PayloadBuilder, points_of
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.io.event_loop import AutoResetEvent, ChangeEvent
from sharecons.protocol.backoff import fraction_of
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.protocol.telemetry.messages import (
    GetTelemetrySubscriptions,
    PushTelemetry,
    PushTelemetryResponse,
)
from sharecons.protocol.telemetry.push_cycle import Push, PushCycle
from sharecons.version import VERSION

__all__ = ["REQUEST_TIMEOUT", "Send", "Telemetry"]

REQUEST_TIMEOUT: Final = 5.0
"""Seconds to wait for a response: metadata requests wait for the same connection."""

LAST_PUSH_TIMEOUT: Final = 1.0
"""Seconds that closing waits for the last push."""

MODULE: Final = "sharecons.metrics.otlp"

NO_ENCODER: Final = (
    "metrics are not pushed: a broker wants them, but the package opentelemetry-proto "
    "cannot be imported. Run `pip install 'sharecons[telemetry]'`, or pass "
    "enable_metrics_push=False"
)

STOPPED: Final = "metrics are not pushed any more"


class Send(Protocol):
    """Sends a request to any broker and returns the response."""

    def __call__(self, request: Any, timeout: float, /) -> Awaitable[Any]: ...


@final
class Telemetry:
    """Pushes the metrics of one member.

    Args:
        application: the metrics of the application.
        send: sends a request to any broker.
    """

    def __init__(
        self,
        settings: FetchSettings,
        recorder: MetricsRecorder,
        application: ApplicationMetrics,
        send: Send,
        *,
        rack: str | None,
    ) -> None:
        self._recorder = recorder
        self._application = application
        self._send_to_any = send
        self._resource = {
            "group_id": settings.group_id,
            "group_member_id": settings.member_id,
        }
        if rack is not None:
            self._resource["client_rack"] = rack
        self._cycle = PushCycle(fraction_of(settings.member_id))
        self._payloads = PayloadBuilder(time.time())
        self._encode: Encode | None = None
        self._wakeup = AutoResetEvent()
        self._changed = ChangeEvent()
        self._load_error = ""
        self._is_active = True
        self._has_pushed = self._has_logged_size = False
        self._log = get_logger(__name__, **settings.log_fields)

    def start(self, tasks: TaskGroup) -> None:
        """Start in this task group."""
        tasks.start_soon(self._run)

    async def client_instance_id(self, timeout: float) -> UUID | None:
        """Wait for the id of this client, at most `timeout` seconds, and return it.

        Return None if brokers collect no client telemetry after all.

        Raises:
            RequestTimedOutError: no broker has assigned an id in time.
        """
        with anyio.move_on_after(timeout):
            while self._is_active and self._cycle.client_instance_id is None:
                await self._changed.wait()
            return self._cycle.client_instance_id
        raise RequestTimedOutError(
            f"no broker has assigned a client instance id within {timeout:g} s; see "
            "the log for problems with brokers, and try again"
        )

    async def close(self) -> None:
        """Push for the last time, if a broker wants metrics; wait a second at most."""
        self._cycle.close()
        self._wakeup.set()
        with anyio.move_on_after(LAST_PUSH_TIMEOUT):
            while self._is_active and not self._cycle.finished:
                await self._changed.wait()

    async def _run(self) -> None:
        try:
            await drive(self._cycle, self._send, self._wakeup, self._on_change)
        finally:
            self._is_active = False
            self._changed.set()

    async def _send(self, request: GetTelemetrySubscriptions | Push) -> Any:
        if isinstance(request, Push):
            return await self._push(request)
        response = await self._send_to_any(request, REQUEST_TIMEOUT)
        if response.requested_metrics and self._encode is None:
            self._encode = await self._load_encoder()
        return response

    async def _push(self, push: Push) -> PushTelemetryResponse:
        assert self._encode is not None, "loaded with the subscription"
        points = points_of(values_of(self._recorder)) + self._application.points()
        payload = self._payloads.build(
            push.subscription, points, time.time(), self._encode
        )
        if payload.left_out and not self._has_logged_size:
            self._has_logged_size = True
            self._log.warning(
                "some metrics are not pushed: all of them exceed telemetry.max.bytes; "
                "raise that config of the brokers, or subscribe to fewer metrics",
                left_out=payload.left_out,
                max_bytes=push.subscription.max_bytes,
            )
        request = PushTelemetry(
            client_instance_id=push.client_instance_id,
            subscription_id=push.subscription.subscription_id,
            terminating=push.terminating,
            compression_type=payload.compression,
            metrics=payload.data,
        )
        self._has_pushed = True
        response: PushTelemetryResponse = await self._send_to_any(
            request, REQUEST_TIMEOUT
        )
        if not response.error:
            self._payloads.on_accepted(payload)
        return response

    async def _load_encoder(self) -> Encode | None:
        """Return the encoder, or None if its package is not installed."""
        # In a thread, as reading 20 ms of modules would block the event loop.
        try:
            if MODULE not in sys.modules:
                await call_in_daemon_thread(_import_encoder)
            return _import_encoder()(self._resource, VERSION)
        except Exception as error:  # noqa: BLE001 (protobuf's check of versions)
            self._load_error = str(error)
            return None

    def _on_change(self) -> None:
        cycle = self._cycle
        if cycle.subscription is not None and self._encode is None:
            self._log.warning(NO_ENCODER, error=self._load_error)
            cycle.stop(NO_ENCODER)
        elif cycle.stop_reason and self._has_pushed:
            self._log.warning(STOPPED, reason=cycle.stop_reason)
        elif cycle.stop_reason:
            self._log.debug(STOPPED, reason=cycle.stop_reason)
        self._changed.set()


def _import_encoder() -> Callable[..., Encode]:
    from sharecons.metrics.otlp import encoder

    return encoder
