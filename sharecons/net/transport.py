"""Byte streams to brokers; where other people's exceptions become ours.

`Network` is the one door to sockets: a test, or a broker in memory, passes its
own. TLS and SASL have their place here, around the stream that `connect` gives.
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
from sharecons.protocol.values import Endpoint

__all__ = ["Network", "TcpNetwork", "Troubles"]


class Network(Protocol):
    """Whatever can connect to a broker."""

    async def connect(self, endpoint: Endpoint) -> ByteStream:
        """Connect; may raise what sockets raise, `OSError` above all."""
        ...


class TcpNetwork:
    """Plain TCP."""

    async def connect(self, endpoint: Endpoint) -> ByteStream:
        # anyio sets TCP_NODELAY: small requests go out at once.
        return await anyio.connect_tcp(endpoint.host, endpoint.port)


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
