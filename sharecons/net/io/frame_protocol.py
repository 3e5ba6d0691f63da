"""What asyncio's loops call: bytes that came, and what goes on with their answer.

No coroutine is here: this is what each answer passes through, and it is compiled.
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
    """The receiving half of `ProtocolWire`, which has the transport.

    Attributes:
        waiter: who waits for an answer.
        read: what makes one of a frame.
        expected: how many answers are to come, of requests that were sent.
        begun: finds what is to be sent while much is still to come; see `Onward`.
        wake_at: has the system wake us for so many bytes at least, where it can.
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
        """Nothing more comes: `ProtocolWire` sees to it."""
        raise NotImplementedError

    def start_timer(self, timeout: float) -> None:
        """Fail if no answer comes in time.

        One timer serves many requests: it finds out when it rings what the last of
        them has left. A cancel scope for each took five times as long as a timer, and
        a timer takes longer than the rest of this.
        """
        self.deadline = self.loop.time() + timeout
        if self.deadline < self._times_out_at:
            self.cancel_timer()
            self._times_out_at = self.deadline
            self._timer = self.loop.call_at(self.deadline, self._on_timer)

    def cancel_timer(self) -> None:
        """Nobody is to fail any more."""
        if self._timer is not None:
            self._timer.cancel()

    # What the event loop calls.

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

    def _update_low_water_mark(self, wake_at: Callable[[int], None]) -> None:
        """A broker sends the fields before its records, those, and the fields behind
        them, one after the other: woken for each we would take its CPU meanwhile."""
        missing = max(1, self._buffer.missing)
        if missing != self._low_water_mark:
            self._low_water_mark = missing
            wake_at(missing)

    def _on_frame(self, waiter: Any, frame: Frame) -> None:
        """Read at once, so that who is woken by it need not wait for our task."""
        try:
            result = self.read(frame)
        except Exception as error:  # noqa: BLE001 (raised where it was asked)
            if not waiter.done():
                waiter.set_exception(error)
        except BaseException:
            # Of an application that went on in it, and ends the event loop: while that
            # ends, who asked looks what is next.
            if not self.expected and not waiter.done():
                waiter.set_result(None)
            raise
        else:
            # What it let go on may have ended us.
            if not waiter.done():
                self._continue(waiter, result)

    def _continue(self, waiter: Any, result: Any) -> None:
        if isinstance(result, Deferred):
            # When whom the answer woke have run: they are in the loop's queue.
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
        except Exception as error:  # noqa: BLE001 (raised where it was asked)
            waiter.set_exception(error)
        else:
            self._continue(waiter, result)

    def _on_timer(self) -> None:
        self._timer, self._times_out_at = None, math.inf
        if self.waiter is None or self.waiter.done():
            return  # the next request begins anew
        remaining = self.deadline - self.loop.time()
        if remaining <= 0.0:
            self.fail(TimeoutError())
        elif remaining < math.inf:
            self.start_timer(remaining)
