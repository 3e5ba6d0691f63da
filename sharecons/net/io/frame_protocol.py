"""The receiving half of an asyncio protocol: bytes to frames to responses.

Every response passes through this module. It has no coroutine, so it is compiled.
"""

import math
from collections.abc import Callable
from typing import Any

from mypy_extensions import mypyc_attr

from sharecons.errors import ProtocolError
from sharecons.net.io.framing import FrameBuffer
from sharecons.net.io.idle_watch import UNREQUESTED
from sharecons.net.io.pipeline import Deferred, NextFrame
from sharecons.wire.codec.api import Frame

__all__ = ["FrameProtocol", "unparsed"]


def unparsed(frame: Frame) -> Frame:
    return frame


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameProtocol:
    """The receiving half of `ProtocolTransport`.

    Attributes:
        waiter: the future of the pending exchange.
        read: converts a frame to the result of the exchange.
        expected: how many responses are still to come.
        on_partial: returns the next frame to send while most of a large response is
            still to come; see `NextFrame`.
        set_low_water_mark: sets how many received bytes wake the event loop; None if
            the system cannot do this.
    """

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.transport: Any = None
        self.waiter: Any = None
        self.read: Callable[[Frame], Any] = unparsed
        self.expected = 0
        self.on_partial: Callable[[], Any] | None = None
        self.set_low_water_mark: Callable[[int], None] | None = None
        self.deadline = math.inf
        self._low_water_mark = 1
        self._buffer = FrameBuffer()
        self._timer: Any = None
        self._times_out_at = math.inf

    def fail(self, error: Exception) -> None:
        """End the connection and the pending exchange with an error."""
        raise NotImplementedError

    def start_timer(self, timeout: float) -> None:
        """Fail if no response arrives within `timeout` seconds.

        One timer serves many requests: when it fires, it restarts for the rest of the
        latest timeout. A cancel scope per request takes five times as long as a timer,
        and a timer takes longer than the rest of this method.
        """
        self.deadline = self.loop.time() + timeout
        if self.deadline < self._times_out_at:
            self.cancel_timer()
            self._times_out_at = self.deadline
            self._timer = self.loop.call_at(self.deadline, self._on_timer)

    def cancel_timer(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    # Called by the event loop.

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer.writable()

    def buffer_updated(self, nbytes: int) -> None:
        waiter = self.waiter
        try:
            if waiter is None:
                raise ProtocolError(UNREQUESTED)
            frame = self._buffer.advance(nbytes)
            if frame is not None:
                if not waiter.done():
                    self.expected -= 1
                    self._on_frame(waiter, frame)
            elif (
                self.on_partial is not None
                and self.expected == 1
                and self._buffer.is_missing_much
            ):
                self._continue_with(waiter, self.on_partial)
        except ProtocolError as error:
            self.fail(error)
        finally:
            if self.set_low_water_mark is not None:
                self._update_low_water_mark(self.set_low_water_mark)

    def _update_low_water_mark(self, set_mark: Callable[[int], None]) -> None:
        """Wake the event loop only once the rest of a small frame has arrived.

        A broker sends the fields before the records, the records and the fields after
        them separately. Waking for each part would take CPU time from the broker.
        """
        missing = max(1, self._buffer.missing)
        if missing != self._low_water_mark:
            self._low_water_mark = missing
            set_mark(missing)

    def _on_frame(self, waiter: Any, frame: Frame) -> None:
        """Read the frame at once, so that the tasks it wakes need not wait for ours."""
        try:
            result = self.read(frame)
        except Exception as error:  # noqa: BLE001 (raised by the pending exchange)
            if not waiter.done():
                waiter.set_exception(error)
        except BaseException:
            # KeyboardInterrupt or SystemExit of an application task that ran in
            # `read`. It ends the event loop; until then the exchange may continue.
            if not self.expected and not waiter.done():
                waiter.set_result(None)
            raise
        else:
            # An application task that ran in `read` may have ended the exchange.
            if not waiter.done():
                self._continue(waiter, result)

    def _continue(self, waiter: Any, result: Any) -> None:
        if isinstance(result, Deferred):
            # Runs after the tasks that the response woke: they are queued already.
            self.loop.call_soon(self._continue_with, waiter, result.find)
        elif isinstance(result, NextFrame):
            self.transport.write(result.data)
            self.on_partial = result.on_partial
            self.expected += 1
            self.start_timer(result.timeout)
        elif not self.expected:
            waiter.set_result(result)

    def _continue_with(self, waiter: Any, find: Callable[[], Any]) -> None:
        if waiter.done():
            return
        try:
            result = find()
        except Exception as error:  # noqa: BLE001 (raised by the pending exchange)
            waiter.set_exception(error)
        else:
            self._continue(waiter, result)

    def _on_timer(self) -> None:
        self._timer, self._times_out_at = None, math.inf
        if self.waiter is None or self.waiter.done():
            return  # the next request starts another timer
        remaining = self.deadline - self.loop.time()
        if remaining <= 0.0:
            self.fail(TimeoutError())
        elif remaining < math.inf:
            self.start_timer(remaining)
