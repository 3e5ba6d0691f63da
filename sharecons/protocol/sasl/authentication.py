"""The SASL exchange on one connection.

Rule 1: the next SASL message, and the time to authenticate again, are decided here and
in `mechanisms`.
Rule 2: no socket and no clock; token and nonce are passed in.

Theory of operation
-------------------
SaslHandshake selects the mechanism. SaslAuthenticate carries the mechanism's bytes,
once or twice. The broker's last response can contain a session lifetime
(`connections.max.reauth.ms`, KIP-368). After that time the broker closes the connection
at the next request, unless the client has authenticated again on it. One
`Authentication` is one such exchange.
"""

from dataclasses import dataclass
from typing import Final

from sharecons.errors import AuthenticationError, ConnectionFailedError, Error
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.sasl.credentials import Credentials
from sharecons.protocol.sasl.mechanisms import Exchange, ExchangeError, start_exchange

__all__ = [
    "Authentication",
    "SaslAuthenticate",
    "SaslAuthenticateResponse",
    "SaslHandshake",
    "SaslHandshakeResponse",
]

RENEW_AFTER: Final = 0.85
"""Fraction of a session's lifetime; Java clients choose between this and 0.95."""

FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshake:
    """Propose a mechanism."""

    mechanism: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeResponse:
    """The broker's error code, and the mechanisms that it supports."""

    error: int
    mechanisms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticate:
    """The next bytes of the mechanism, to the broker."""

    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateResponse:
    """The broker's bytes; `session_lifetime` is in seconds, 0 means no limit."""

    error: int
    message: str | None
    payload: bytes
    session_lifetime: float


Request = SaslHandshake | SaslAuthenticate


class Authentication:
    """One SASL exchange.

    Attributes:
        finished: True if it has ended, with or without an error.
        error: why either side rejected the credentials, or None.
        renew_at, ends_at: when to authenticate again, and when the session ends;
            after a success.
    """

    def __init__(
        self, credentials: Credentials, *, broker: str, nonce: str, token: str = ""
    ) -> None:
        self.finished = False
        self.error: Error | None = None
        self.renew_at = self.ends_at = FOREVER
        self._broker = broker
        self._mechanism = credentials.mechanism
        self._user = f" as {credentials.username!r}" if credentials.username else ""
        self._sent_at = 0.0
        self._next: Request | None = SaslHandshake(mechanism=self._mechanism)
        self._exchange: Exchange | None = None
        try:
            self._exchange = start_exchange(credentials, nonce, token)
        except ExchangeError as error:
            self._fail(str(error))

    def next_request(self, now: float) -> Request | None:
        self._sent_at = now
        request, self._next = self._next, None
        return request

    def on_response(
        self,
        request: Request,
        response: SaslHandshakeResponse | SaslAuthenticateResponse,
    ) -> None:
        match response:
            case SaslHandshakeResponse():
                self._on_handshake(response)
            case SaslAuthenticateResponse(error=Code.NONE):
                self._on_challenge(response)
            case SaslAuthenticateResponse():
                self._on_rejection(response)

    def _on_handshake(self, response: SaslHandshakeResponse) -> None:
        match response.error:
            case Code.NONE:
                self._respond(b"")
            case Code.UNSUPPORTED_SASL_MECHANISM:
                offered = ", ".join(response.mechanisms) or "none"
                self._fail(f"this listener does not support it; it supports: {offered}")
            case Code.ILLEGAL_SASL_STATE:
                self._fail(
                    "this listener has SASL disabled; connect without SASL "
                    "(security.protocol PLAINTEXT or SSL), or to another port"
                )
            case code:
                self._fail_temporarily(code, None)

    def _on_challenge(self, response: SaslAuthenticateResponse) -> None:
        self._respond(response.payload)
        if self._next is None and self.error is None:
            self.finished = True
            if response.session_lifetime > 0:
                # The session started after the request was sent.
                lifetime = response.session_lifetime
                self.renew_at = self._sent_at + RENEW_AFTER * lifetime
                self.ends_at = self._sent_at + lifetime

    def _respond(self, challenge: bytes) -> None:
        assert self._exchange is not None
        try:
            payload = self._exchange.respond(challenge)
        except ExchangeError as error:
            self._fail(str(error))
        else:
            if payload is not None:
                self._next = SaslAuthenticate(payload=payload)

    def _on_rejection(self, response: SaslAuthenticateResponse) -> None:
        if response.error == Code.SASL_AUTHENTICATION_FAILED:
            self._fail(response.message or "the broker returned no reason")
        elif response.error == Code.ILLEGAL_SASL_STATE:
            self._fail(response.message or "the broker expected another message")
        else:
            self._fail_temporarily(response.error, response.message)

    def _fail(self, reason: str) -> None:
        self._end(
            AuthenticationError(
                f"broker {self._broker}: {self._mechanism}{self._user}: {reason}"
            )
        )

    def _fail_temporarily(self, code: int, message: str | None) -> None:
        """End with a retriable error, as the credentials are not its cause."""
        reason = code_name(code) + (f" ({message})" if message else "")
        self._end(
            ConnectionFailedError(
                f"broker {self._broker}: {self._mechanism}{self._user}: {reason}"
            )
        )

    def _end(self, failure: Error) -> None:
        self.finished, self.error, self._next = True, failure, None
