"""Frame transports to brokers, and the mapping of exceptions to the library's errors.

All sockets are opened by a `Network`; tests and in-memory brokers pass their own. The
transport it returns includes TLS; `net.connection` adds SASL.
"""

import os
from collections.abc import Callable
from socket import gaierror
from ssl import SSLContext, SSLEOFError, SSLError
from types import TracebackType
from typing import Final, Protocol, Self

import anyio
from anyio.abc import ByteStream

from sharecons.config.security import TlsFiles
from sharecons.errors import (
    ConnectionFailedError,
    Error,
    ProtocolError,
    RequestTimedOutError,
)
from sharecons.net.io import tcp
from sharecons.net.io.event_loop import in_trio
from sharecons.net.io.exchange_timeout import exchange_within
from sharecons.net.io.idle_watch import UNREQUESTED, OnLost, Wait, wait_while_watching
from sharecons.net.io.tls import HANDSHAKE_CLOSED, MapTlsError, map_tls_error
from sharecons.protocol.partitions import Endpoint
from sharecons.wire.codec.api import Frame
from sharecons.wire.codec.frames import FrameBuffer

__all__ = ["ErrorMapping", "FrameTransport", "Network", "StreamTransport", "TcpNetwork"]

CLOSED_ERRORS: Final = (
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    ConnectionResetError,
    SSLEOFError,
)

RESET_ERRORS: Final = (ConnectionResetError, BrokenPipeError, anyio.BrokenResourceError)


class FrameTransport(Protocol):
    """Frames to and from one broker; raises errors of sockets and anyio streams.

    Transports of applications can omit the attribute.

    Attributes:
        received: how many bytes of an incomplete frame have arrived.
    """

    async def exchange(self, data: bytes, timeout: float) -> Frame:
        """Send a frame, and return the next one to arrive, without its length prefix.

        After an error or a cancel the transport can be in the middle of a frame.

        Args:
            data: the frame to send, with its length prefix.
            timeout: seconds to wait.

        Raises:
            TimeoutError: no response in time.
            ProtocolError: the received bytes are no frame, or more than one.
            EndOfStream: the broker closed the connection.
        """
        ...

    async def idle(self, wait: Wait, on_lost: OnLost, /) -> None:
        """Await `wait()` while nothing is exchanged, and watch the connection.

        If the connection has ended, ends meanwhile, or bytes arrive that were not
        requested, call `on_lost` once with the reason, immediately, perhaps outside of
        any task. The transport cannot be used after that. `on_lost` makes `wait()`
        return. Cancelling this loses nothing.
        """
        ...

    async def aclose(self) -> None:
        """Close without waiting for the broker; ends waiting calls."""
        ...


class Network(Protocol):
    """Opens frame transports to brokers."""

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        """Connect to a broker; raises errors of sockets, mostly `OSError`."""
        ...


class TcpNetwork:
    """TCP, with or without TLS.

    Args:
        tls_files: the files of the context; they are renewed while a client runs.
    """

    def __init__(
        self, ssl_context: SSLContext | None = None, tls_files: TlsFiles | None = None
    ) -> None:
        self._ssl_context = ssl_context
        self._tls_files = tls_files

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        try:
            if self._ssl_context is None:
                return await tcp.connect(endpoint)
            return await self._connect_tls(endpoint, self._ssl_context)
        except UnicodeError as error:
            # Brokers can advertise any string.
            raise ConnectionFailedError(
                f"connecting to {endpoint}: invalid host name; check bootstrap_servers "
                "and the broker's advertised.listeners"
            ) from error

    async def _connect_tls(
        self, endpoint: Endpoint, context: SSLContext
    ) -> FrameTransport:
        if self._tls_files is not None:
            self._tls_files.refresh(context)
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
            # Frames have a length, so a missing close_notify cannot truncate one.
            tls_standard_compatible=False,
        )
        return StreamTransport(stream)


class StreamTransport:
    """A frame transport over an anyio byte stream."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = FrameBuffer()

    @property
    def received(self) -> int:
        return self._buffer.received

    async def _receive(self) -> Frame:
        while True:
            buffer = self._buffer.writable()
            chunk = await self._stream.receive(len(buffer))
            buffer[: len(chunk)] = chunk
            frame = self._buffer.advance(len(chunk))
            if frame is not None:
                return frame

    async def exchange(self, data: bytes, timeout: float) -> Frame:
        send = self._stream.send
        return await exchange_within(timeout, lambda: send(data), self._receive)

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
    """Converts errors of streams to the library's errors.

    Args:
        action: the failed step and its broker, for the message.
        is_request: prefix the text of a ProtocolError with the action.
        if_closed: returns a hint for a connection that the broker closed or reset.
        hint: ends all messages, unless the error is the library's already.
        map_tls: returns the errors of TLS.

    Raises:
        RequestTimedOutError: for `TimeoutError`.
        AuthenticationError: for rejected certificates.
        ConnectionFailedError: for other errors of sockets.
    """

    def __init__(
        self,
        action: str,
        *,
        is_request: bool = False,
        if_closed: Callable[[], str] = str,
        hint: str = "",
        map_tls: MapTlsError = map_tls_error,
    ) -> None:
        self._hint = hint
        self._map_tls = map_tls
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
            raise RequestTimedOutError(
                f"{self._action}: no response in time{self._hint}"
            ) from error
        if isinstance(error, anyio.EndOfStream):
            raise ConnectionFailedError(
                f"{self._action}: the broker closed the connection{self._if_closed()}"
                f"{self._hint}"
            ) from error
        tls_error = error if isinstance(error, SSLError) else _root_cause(error)
        if isinstance(tls_error, SSLError):
            raise self._map_tls(tls_error, self._action) from error
        if isinstance(
            error, OSError | anyio.BrokenResourceError | anyio.ClosedResourceError
        ):
            cause = _root_cause(error)
            hint = self._if_closed() if isinstance(cause, RESET_ERRORS) else ""
            text = f"{self._action}: {_reason(cause)}{hint}{self._hint}"
            raise ConnectionFailedError(text) from error


def _root_cause(error: BaseException) -> BaseException:
    """Return the system's error; anyio wraps it, repeatedly for several addresses."""
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
    # The error numbers of TLS are not the system's.
    number = error.errno if isinstance(error, OSError) else None
    if number is not None and number > 0 and not isinstance(error, SSLError):
        return os.strerror(number)  # asyncio's message lacks it
    return str(error) or type(error).__name__
