"""SASL on one connection: at its start, and again before the SASL session ends."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from secrets import token_urlsafe
from typing import Any

from sharecons.errors import ConnectionFailedError
from sharecons.net.io.callbacks import is_cancellation, raise_exit
from sharecons.net.io.event_loop import running_clock
from sharecons.protocol.sasl.authentication import FOREVER, Authentication
from sharecons.protocol.sasl.credentials import Credentials

__all__ = ["SaslSession"]


class SaslSession:
    """Authenticates one connection, and again before the session's lifetime ends."""

    def __init__(self, credentials: Credentials, broker: str) -> None:
        self._credentials = credentials
        self._broker = broker
        self._clock = running_clock()
        self._renew_at = FOREVER

    @property
    def is_due(self) -> bool:
        """True if the session ends soon or has ended: call `authenticate` first."""
        return self._clock() >= self._renew_at

    async def authenticate(self, send: Callable[[Any], Awaitable[Any]]) -> None:
        """Authenticate once.

        If this is cancelled or raises, the connection cannot be used any more.

        Raises:
            AuthenticationError: either side rejected the credentials.
            ConnectionFailedError: the token function failed.
            Error: raised by `send`.
        """
        authentication = Authentication(
            self._credentials,
            broker=self._broker,
            nonce=token_urlsafe(24),
            token=await self._token(),
        )
        while (request := authentication.next_request(self._clock())) is not None:
            authentication.on_response(request, await send(request))
        if authentication.error is not None:
            raise authentication.error
        self._renew_at = authentication.renew_at

    async def _token(self) -> str:
        source = self._credentials.token
        if source is None:
            return ""
        try:
            token = source()
        except BaseException as error:
            raise self._token_failure(error) from error
        if not isawaitable(token):
            return token
        try:
            return await token
        except BaseException as error:
            if is_cancellation(error):
                raise
            raise self._token_failure(error) from error

    def _token_failure(self, error: BaseException) -> ConnectionFailedError:
        """Return the error to raise for an exception of the application's function."""
        raise_exit(error)
        return ConnectionFailedError(
            f"connecting to {self._broker}: the token function in `security` raised "
            f"{type(error).__name__}: {error}"
        )
