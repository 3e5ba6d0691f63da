"""SASL on the connections of one client.

Each connection authenticates at its start, and again before its session ends. A bad
token is not the end of a running client: while a session lasts, the function that
returned it is called again.
"""

import time
from collections.abc import Awaitable, Callable
from secrets import token_urlsafe
from typing import Any, Final

from sharecons.errors import AuthenticationError, ConnectionFailedError, Error
from sharecons.net.io.event_loop import running_clock
from sharecons.net.io.token_function import TokenFunction
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.protocol.grace_period import GracePeriod
from sharecons.protocol.sasl.authentication import FOREVER, Authentication
from sharecons.protocol.sasl.credentials import Credentials
from sharecons.protocol.sasl.renewal import Renewal
from sharecons.protocol.sasl.tokens import expiry_of

__all__ = ["SaslSession", "SaslSessions"]

_TEXTS: Final = ProblemTexts(
    begins="authenticating again has failed; retrying while the session lasts",
    lasts="authenticating again still fails; retrying while the session lasts",
    ends="authenticated again",
)

Send = Callable[[Any], Awaitable[Any]]


class SaslSessions:
    """The state that the SASL sessions of one client share.

    Attributes:
        credentials: the client's credentials.
        grace: for tokens after the end of the last session. On a connection with few
            requests the first attempt can follow the session's end.
    """

    def __init__(self, credentials: Credentials, grace: GracePeriod) -> None:
        self.credentials = credentials
        self.grace = grace
        self._last_until = -FOREVER  # the end of the last session, once there is one
        self._clock_offset = time.time() - time.monotonic()
        self._problems: ProblemLog | None = None

    def wall_clock(self) -> float:
        """Return seconds since the epoch; a clock that is set ahead changes nothing."""
        return min(time.time(), time.monotonic() + self._clock_offset)

    def on_success(self, ends_at: float, now: float, *, broker: str) -> None:
        """End the problem of the credentials; record when their session ends."""
        self.grace.on_accepted(broker)
        until = now if ends_at == FOREVER else ends_at
        self._last_until = max(self._last_until, until)
        if self._problems is not None:
            self._problems.on_success("", now)

    def on_failure(self, broker: str, error: Error, now: float) -> bool:
        """Return whether a bad token does not end the client; log it then."""
        if not self.grace.on_rejected(broker, now, self._last_until):
            return False
        if self._problems is None:
            # structlog takes 0.1 s to import; most clients never need it here.
            from sharecons.log import get_logger

            self._problems = ProblemLog(get_logger(__name__), _TEXTS)
        self._problems.on_failure("", now, broker=broker, reason=str(error))
        return True


class SaslSession:
    """Authenticates one connection, and again before the session's lifetime ends."""

    def __init__(self, sessions: SaslSessions, broker: str) -> None:
        self._sessions = sessions
        self._credentials = sessions.credentials
        self._broker = broker
        self._clock = running_clock()
        self._renewal = Renewal()
        self._token: TokenFunction | None = None
        if self._credentials.token is not None:
            self._token = TokenFunction(self._credentials.token, broker)

    @property
    def is_due(self) -> bool:
        """True if the session ends soon or has ended: call `authenticate` first."""
        return self._clock() >= self._renewal.due_at

    async def authenticate(self, send: Send) -> None:
        """Authenticate once, or put it off while the present session lasts.

        If this is cancelled or raises, the connection cannot be used any more.

        Raises:
            AuthenticationError: either side rejected the credentials.
            ConnectionFailedError: the token function failed, or the broker rejected a
                token while a session of another connection lasts.
            Error: raised by `send`.
        """
        error = await self._attempt(send)
        if error is not None:
            raise error

    async def _attempt(self, send: Send) -> Error | None:
        """Authenticate; return the error to raise, or None."""
        try:
            token = await self._next_token()
        except Error as error:
            now = self._clock()
            if not self._renewal.on_failure(now):
                return self._retriable(error, now)
            self._sessions.on_failure(self._broker, error, now)
            return None
        return await self._exchange(token, send)

    async def _next_token(self) -> str:
        if self._token is None:
            return ""
        token = await self._token()
        expiry = expiry_of(token)
        lasts = self._clock() < self._renewal.ends_at
        # A broker that rejects a token ends the connection, and with it all locks.
        now = self._sessions.wall_clock()
        if lasts and expiry is not None and expiry <= now:
            seconds = now - expiry
            raise AuthenticationError(
                f"broker {self._broker}: the token function in `security` returned a "
                f"token that expired {seconds:.0f} s ago; it must return a valid one"
            )
        return token

    async def _exchange(self, token: str, send: Send) -> Error | None:
        authentication = Authentication(
            self._credentials,
            broker=self._broker,
            nonce=token_urlsafe(24),
            token=token,
        )
        while (request := authentication.next_request(self._clock())) is not None:
            authentication.on_response(request, await send(request))
        if authentication.error is not None:
            return self._retriable(authentication.error, self._clock())
        self._renewal.on_success(authentication.renew_at, authentication.ends_at)
        ends_at = authentication.ends_at
        self._sessions.on_success(ends_at, self._clock(), broker=self._broker)
        return None

    def _retriable(self, error: Error, now: float) -> Error:
        """Return the error to raise: a retriable one if another token can help."""
        if not isinstance(error, AuthenticationError) or self._token is None:
            return error
        if not self._sessions.on_failure(self._broker, error, now):
            return error
        failure = ConnectionFailedError(f"{error}; trying again with another token")
        failure.__cause__ = error
        return failure
