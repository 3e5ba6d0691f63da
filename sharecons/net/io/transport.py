"""Wires to brokers; where other people's exceptions become ours.

`Network` is the one door to sockets: a test, or a broker in memory, passes its
own. TLS is in what `connect` gives; SASL is the connection's.
"""

import os
from collections.abc import Callable
from socket import gaierror
from ssl import SSLContext, SSLEOFError, SSLError
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

import anyio
from anyio.abc import ByteStream

from sharecons.errors import (
    ConnectionFailedError,
    Error,
    ProtocolError,
    RequestTimedOutError,
)
from sharecons.net.io import tcp
from sharecons.net.io.clock import in_trio
from sharecons.net.io.framing import FrameBuffer
from sharecons.net.io.idle_watch import UNREQUESTED, OnLost, Wait, wait_while_watching
from sharecons.net.io.tls import HANDSHAKE_CLOSED, map_tls_error
from sharecons.protocol.messages import Endpoint
from sharecons.wire.codec.api import Frame

__all__ = [
    "ErrorMapping",
    "FrameTransport",
    "Network",
    "StreamTransport",
    "TcpNetwork",
]

T = TypeVar("T")

CLOSED_ERRORS: Final = (
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    ConnectionResetError,
    SSLEOFError,
)

RESET_ERRORS: Final = (ConnectionResetError, BrokenPipeError, anyio.BrokenResourceError)


class FrameTransport(Protocol):
    """Frames to and from one broker; raises what sockets and anyio's streams raise."""

    async def send(self, data: bytes) -> None:
        """Send all of it. Cancelling this leaves a part sent."""
        ...

    async def receive(self) -> Frame:
        """Receive the next frame, without its length, which is checked.

        Cancelling this, or an error, leaves the wire in the middle of a frame.

        Raises:
            ProtocolError: these bytes are no frame, or more than one.
            EndOfStream: the wire was closed at the other end.
        """
        ...

    async def exchange(
        self, data: bytes, timeout: float, read: Callable[[Frame], T]
    ) -> T:
        """Send, and give what `read` makes of the next frame, within `timeout` seconds.

        `read` may run in the event loop's own call, outside of any task, before who
        waits here is woken: what it wakes runs first. Where it gives an `Onward`, a
        wire may exchange that by itself, at once, while who waits here goes on
        waiting, and where it gives a `Later`, what that tells; or give them as it gives
        all else. Only a wire that does so may send what is found when an answer has
        `begun`; it then goes on until all was answered.
        Cancelling this may come after `read`. As `send` and `receive`, but that it may
        raise `TimeoutError` too, and what `read` raises.
        """
        ...

    async def idle(self, wait: Wait, on_lost: OnLost, /) -> None:
        """Await `wait()` while nothing is exchanged, and watch the connection.

        If it has ended, ends meanwhile, or bytes come that were not requested, call
        `lost` once with the reason, at once, perhaps outside of any task; the wire is
        of no use then. `lost` makes `wait()` return. Cancelling this loses nothing.
        """
        ...

    async def aclose(self) -> None:
        """Close at once, without waiting for the other end; tells who waits."""
        ...


class Network(Protocol):
    """Whatever can connect to a broker."""

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        """Connect; may raise what sockets raise, `OSError` above all."""
        ...


class TcpNetwork:
    """TCP, plain or with TLS in it."""

    def __init__(self, ssl_context: SSLContext | None = None) -> None:
        self._ssl_context = ssl_context

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        try:
            if self._ssl_context is None:
                return await tcp.connect(endpoint)
            return await self._connect_tls(endpoint, self._ssl_context)
        except UnicodeError as error:
            # Brokers may advertise any string.
            raise ConnectionFailedError(
                f"connecting to {endpoint}: this is not a host name"
            ) from error

    async def _connect_tls(
        self, endpoint: Endpoint, context: SSLContext
    ) -> FrameTransport:
        try:
            return await self._start_tls(endpoint, context)
        except CLOSED_ERRORS as error:
            raise ConnectionFailedError(
                f"connecting to {endpoint}: {HANDSHAKE_CLOSED}"
            ) from error

    async def _start_tls(
        self, endpoint: Endpoint, context: SSLContext
    ) -> FrameTransport:
        if not in_trio():
            return await tcp.connect(endpoint, context)
        stream = await anyio.connect_tcp(
            endpoint.host,
            endpoint.port,
            happy_eyeballs_delay=tcp.STAGGER,
            ssl_context=context,
            # A frame tells its own length, so that nothing is gained by a last word.
            tls_standard_compatible=False,
        )
        return StreamTransport(stream)


class StreamTransport:
    """A byte stream of anyio's, as a `Wire`."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = FrameBuffer()

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def receive(self) -> Frame:
        while True:
            buffer = self._buffer.writable()
            chunk = await self._stream.receive(len(buffer))
            buffer[: len(chunk)] = chunk
            frame = self._buffer.advance(len(chunk))
            if frame is not None:
                return frame

    async def exchange(
        self, data: bytes, timeout: float, read: Callable[[Frame], T]
    ) -> T:
        with anyio.fail_after(timeout):
            await self.send(data)
            return read(await self.receive())

    async def idle(self, wait: Wait, on_lost: OnLost) -> None:
        await wait_while_watching(wait, self._wait_for_end, on_lost)

    async def _wait_for_end(self) -> Exception:
        try:
            await self._stream.receive(1)
        except (OSError, *CLOSED_ERRORS, anyio.ClosedResourceError) as error:
            return error
        return ProtocolError(UNREQUESTED)

    async def aclose(self) -> None:
        await anyio.aclose_forcefully(self._stream)


class ErrorMapping:
    """Turns what a stream raises into errors of ours that say what was tried.

    Args:
        doing: what was tried, and with whom.
        asking: it was a question, so that garbage is an answer to it.
        if_closed: returns a hint for a connection that the broker closed or reset.

    Raises:
        RequestTimedOutError: for `TimeoutError`.
        AuthenticationError: for certificates that are not believed.
        ConnectionFailedError: for all that a socket may raise.
    """

    def __init__(
        self,
        action: str,
        *,
        is_request: bool = False,
        if_closed: Callable[[], str] = str,
    ) -> None:
        self._action = action
        self._is_request = is_request
        self._if_closed = if_closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, ProtocolError) and self._is_request:
            raise ProtocolError(f"{self._action}: {error}") from error
        if isinstance(error, Error) or error is None:
            return
        if isinstance(error, TimeoutError) and not error.args:
            raise RequestTimedOutError(f"{self._action}: no answer in time") from error
        if isinstance(error, anyio.EndOfStream):
            raise ConnectionFailedError(
                f"{self._action}: the broker closed the connection{self._if_closed()}"
            ) from error
        tls_error = error if isinstance(error, SSLError) else _root_cause(error)
        if isinstance(tls_error, SSLError):
            raise map_tls_error(tls_error, self._action) from error
        if isinstance(
            error, OSError | anyio.BrokenResourceError | anyio.ClosedResourceError
        ):
            cause = _root_cause(error)
            hint = self._if_closed() if isinstance(cause, RESET_ERRORS) else ""
            text = f"{self._action}: {_reason(cause)}{hint}"
            raise ConnectionFailedError(text) from error


def _root_cause(error: BaseException) -> BaseException:
    """What the system raised; anyio wraps it, more than once for several addresses."""
    while True:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if cause is None:
            return error
        error = cause


def _reason(error: BaseException) -> str:
    if isinstance(error, gaierror):
        return f"cannot resolve the host: {error.strerror or error}"
    # TLS has numbers of its own.
    number = error.errno if isinstance(error, OSError) else None
    if number is not None and number > 0 and not isinstance(error, SSLError):
        return os.strerror(number)  # asyncio's own words leave this out
    return str(error) or type(error).__name__
