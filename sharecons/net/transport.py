"""Wires to brokers; where other people's exceptions become ours.

`Network` is the one door to sockets: a test, or a broker in memory, passes its
own. TLS and SASL have their place here, around the wire that `connect` gives.
"""

import os
from socket import gaierror
from ssl import SSLError
from types import TracebackType
from typing import Protocol, Self

import anyio
from anyio.abc import ByteStream

from sharecons.errors import (
    ConnectionFailedError,
    Error,
    ProtocolError,
    RequestTimedOutError,
)
from sharecons.net import sockets
from sharecons.net.framing import FrameBuffer
from sharecons.protocol.values import Endpoint

__all__ = ["Network", "StreamWire", "TcpNetwork", "Troubles", "Wire"]


class Wire(Protocol):
    """Frames to and from one broker; raises what sockets and anyio's streams raise."""

    async def send(self, data: bytes) -> None:
        """Send all of it. Cancelling this leaves a part sent."""
        ...

    async def receive(self) -> memoryview:
        """Receive the next frame, without its length, which is checked.

        Cancelling this, or an error, leaves the wire in the middle of a frame.

        Raises:
            ProtocolError: these bytes are no frame, or more than one.
            EndOfStream: the wire was closed at the other end.
        """
        ...

    async def exchange(self, data: bytes, timeout: float) -> memoryview:
        """Send, and receive the next frame, within `timeout` seconds.

        As `send` and `receive`, but that it may raise `TimeoutError` too.
        """
        ...

    async def aclose(self) -> None:
        """Close at once, without waiting for the other end; tells who waits."""
        ...


class Network(Protocol):
    """Whatever can connect to a broker."""

    async def connect(self, endpoint: Endpoint) -> Wire:
        """Connect; may raise what sockets raise, `OSError` above all."""
        ...


class TcpNetwork:
    """Plain TCP."""

    async def connect(self, endpoint: Endpoint) -> Wire:
        return await sockets.connect(endpoint)


class StreamWire:
    """A byte stream of anyio's, as a `Wire`."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = FrameBuffer()

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def receive(self) -> memoryview:
        while True:
            room = self._buffer.room()
            chunk = await self._stream.receive(len(room))
            room[: len(chunk)] = chunk
            frame = self._buffer.received(len(chunk))
            if frame is not None:
                return frame

    async def exchange(self, data: bytes, timeout: float) -> memoryview:
        with anyio.fail_after(timeout):
            await self.send(data)
            return await self.receive()

    async def aclose(self) -> None:
        await anyio.aclose_forcefully(self._stream)


class Troubles:
    """Turns what a stream raises into errors of ours that say what was tried.

    Args:
        doing: what was tried, and with whom.
        asking: it was a question, so that garbage is an answer to it.

    Raises:
        RequestTimedOutError: for `TimeoutError`.
        ConnectionFailedError: for all that a socket may raise.
    """

    def __init__(self, doing: str, *, asking: bool = False) -> None:
        self._doing = doing
        self._asking = asking

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, ProtocolError) and self._asking:
            raise ProtocolError(f"{self._doing}: {error}") from error
        if isinstance(error, Error) or error is None:
            return
        if isinstance(error, TimeoutError) and not error.args:
            raise RequestTimedOutError(f"{self._doing}: no answer in time") from error
        if isinstance(error, anyio.EndOfStream):
            raise ConnectionFailedError(
                f"{self._doing}: the broker closed the connection"
            ) from error
        if isinstance(
            error, OSError | anyio.BrokenResourceError | anyio.ClosedResourceError
        ):
            reason = _innermost(error)
            raise ConnectionFailedError(f"{self._doing}: {reason}") from error


def _innermost(error: BaseException) -> str:
    """What the system said; anyio wraps it, more than once for several addresses."""
    while True:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if cause is None:
            return _reason(error)
        error = cause


def _reason(error: BaseException) -> str:
    # TLS and the resolver have numbers of their own.
    number = error.errno if isinstance(error, OSError) else None
    if number is not None and number > 0 and not isinstance(error, SSLError | gaierror):
        return os.strerror(number)  # asyncio's own words leave this out
    return str(error) or type(error).__name__
