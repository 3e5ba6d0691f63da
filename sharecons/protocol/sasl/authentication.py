"""SASL over one connection: what is sent next, and what the answers mean.

Rule 1: whatever decides which SASL message follows, and when to authenticate again,
lives in this file and in `mechanisms`.
Rule 2: it meets no socket and no clock. A token and a nonce come in with it.

Theory of operation
-------------------
SaslHandshake names the mechanism; SaslAuthenticate carries the mechanism's own bytes,
once or twice, until it is content. With its last answer the broker may name a time
(`connections.max.reauth.ms`, KIP-368): after that it closes the connection at the next
request, unless the same dialogue was held again by then, on the same connection. One
`Authentication` is one such dialogue.
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
"""Of a session's lifetime; Java's clients choose between this and 0.95."""

FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshake:
    """Propose a mechanism."""

    mechanism: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeResponse:
    """What the broker says of it, and what it offers."""

    error: int
    mechanisms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticate:
    """Bytes of a mechanism's."""

    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateResponse:
    """The broker's; `session_lifetime` is in seconds, 0 for no end."""

    error: int
    message: str | None
    payload: bytes
    session_lifetime: float


Request = SaslHandshake | SaslAuthenticate


class Authentication:
    """One dialogue; `finished` with a `failure`, or with none.

    Attributes:
        finished: nothing more is to be sent.
        failure: why the broker, or this client, is not content.
        renew_at: when the next dialogue is to be held, if this one went well.
    """

    def __init__(
        self, credentials: Credentials, *, broker: str, nonce: str, token: str = ""
    ) -> None:
        self.finished = False
        self.error: Error | None = None
        self.renew_at = FOREVER
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

    def answered(
        self, request: Request, answer: SaslHandshakeResponse | SaslAuthenticateResponse
    ) -> None:
        match answer:
            case SaslHandshakeResponse():
                self._on_handshake(answer)
            case SaslAuthenticateResponse(error=Code.NONE):
                self._on_challenge(answer)
            case SaslAuthenticateResponse():
                self._on_rejection(answer)

    def _on_handshake(self, answer: SaslHandshakeResponse) -> None:
        match answer.error:
            case Code.NONE:
                self._respond(b"")
            case Code.UNSUPPORTED_SASL_MECHANISM:
                offered = ", ".join(answer.mechanisms) or "none"
                self._fail(f"this listener does not offer it, but: {offered}")
            case Code.ILLEGAL_SASL_STATE:
                self._fail(
                    "this listener asks nobody who he is; connect without SASL "
                    "(security.protocol PLAINTEXT or SSL), or to another port"
                )
            case code:
                self._fail_temporarily(code, None)

    def _on_challenge(self, answer: SaslAuthenticateResponse) -> None:
        self._respond(answer.payload)
        if self._next is None and self.error is None:
            self.finished = True
            if answer.session_lifetime > 0:
                # The session began after this was sent.
                self.renew_at = self._sent_at + RENEW_AFTER * answer.session_lifetime

    def _respond(self, challenge: bytes) -> None:
        assert self._exchange is not None, "without one, all has failed"
        try:
            payload = self._exchange.respond(challenge)
        except ExchangeError as error:
            self._fail(str(error))
        else:
            if payload is not None:
                self._next = SaslAuthenticate(payload=payload)

    def _on_rejection(self, answer: SaslAuthenticateResponse) -> None:
        if answer.error == Code.SASL_AUTHENTICATION_FAILED:
            self._fail(answer.message or "the broker does not say why")
        elif answer.error == Code.ILLEGAL_SASL_STATE:
            self._fail(answer.message or "the broker expected something else")
        else:
            self._fail_temporarily(answer.error, answer.message)

    def _fail(self, reason: str) -> None:
        self._end(
            AuthenticationError(
                f"broker {self._broker}: {self._mechanism}{self._user}: {reason}"
            )
        )

    def _fail_temporarily(self, code: int, message: str | None) -> None:
        """It is not about us: another time it may go well."""
        said = code_name(code) + (f" ({message})" if message else "")
        self._end(
            ConnectionFailedError(
                f"broker {self._broker}: {self._mechanism}{self._user}: {said}"
            )
        )

    def _end(self, failure: Error) -> None:
        self.finished, self.error, self._next = True, failure, None
