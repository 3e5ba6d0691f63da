"""The SASL mechanisms PLAIN (RFC 4616), SCRAM (RFC 5802), OAUTHBEARER (RFC 7628)."""

import re
from typing import Final, Protocol

from sharecons.protocol.sasl.credentials import OAUTHBEARER, PLAIN, Credentials
from sharecons.protocol.sasl.tokens import is_token

__all__ = ["Exchange", "ExchangeError", "start_exchange"]

SEPARATOR: Final = "\x01"
MAX_ITERATIONS: Final = 500_000  # half a second; Kafka stores up to 16,384 (KIP-554)
_ITERATIONS: Final = re.compile(r",i=([0-9]{1,9})")
_NAME: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")


class ExchangeError(Exception):
    """The exchange has failed; converted to an `AuthenticationError`."""


class Exchange(Protocol):
    """The client's side of a mechanism."""

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the next bytes, or None if the exchange has succeeded.

        The first challenge is empty.

        Raises:
            ExchangeError: the broker rejects the credentials, or its response is
                invalid.
        """
        ...


def start_exchange(credentials: Credentials, nonce: str, token: str) -> Exchange:
    """Start the exchange for credentials.

    Raises:
        ExchangeError: the credentials cannot be encoded.
    """
    if credentials.mechanism == PLAIN:
        return _Plain(credentials)
    if credentials.mechanism == OAUTHBEARER:
        return _Bearer(credentials, token)
    return _Scram(credentials, nonce)


class _Plain:
    def __init__(self, credentials: Credentials) -> None:
        parts = ("", credentials.username, credentials.password)
        if any("\0" in part for part in parts):
            raise ExchangeError(
                "user name and password must not contain NUL characters"
            )
        self._message: bytes | None = "\0".join(parts).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        message, self._message = self._message, None
        return message


class _ScramClient(Protocol):
    """The part of scramp's interface used here."""

    def get_client_first(self) -> str: ...

    def set_server_first(self, message: str) -> None: ...

    def get_client_final(self) -> str: ...

    def set_server_final(self, message: str) -> None: ...


class _Scram:
    """SCRAM, implemented by scramp, which is loaded on first use."""

    def __init__(self, credentials: Credentials, nonce: str) -> None:
        from scramp import (  # type: ignore[import-untyped]
            ScramClient,
            ScramException,
        )

        self._error: type[Exception] = ScramException
        try:
            self._client: _ScramClient = ScramClient(
                [credentials.mechanism],
                credentials.username,
                credentials.password,
                c_nonce=nonce,
            )
        except ScramException as error:
            raise ExchangeError(f"invalid user name or password: {error}") from error
        self._steps = [self._verify, self._final, self._first]

    def respond(self, challenge: bytes) -> bytes | None:
        try:
            return self._steps.pop()(challenge.decode())
        except (self._error, UnicodeDecodeError) as error:
            raise ExchangeError(f"invalid SCRAM server response: {error}") from error

    def _first(self, challenge: str) -> bytes:
        return self._client.get_client_first().encode()

    def _final(self, challenge: str) -> bytes:
        found = _ITERATIONS.search(challenge)
        if found is not None and int(found[1]) > MAX_ITERATIONS:
            raise ExchangeError(f"too many iterations: {found[1]}")
        self._client.set_server_first(challenge)
        return self._client.get_client_final().encode()

    def _verify(self, challenge: str) -> None:
        # Verifies that the broker knows the password as well.
        self._client.set_server_final(challenge)


class _Bearer:
    def __init__(self, credentials: Credentials, token: str) -> None:
        if not is_token(token):
            raise ExchangeError(
                "the token is empty or has invalid characters (RFC 6750)"
            )
        fields = {"auth": f"Bearer {token}", **credentials.extensions}
        for name, value in credentials.extensions.items():
            if name == "auth" or not _NAME.fullmatch(name):
                raise ExchangeError(f"{name!r} is not a valid extension name")
            if not _VALUE.fullmatch(value):
                raise ExchangeError(
                    f"extension {name!r} has an empty value or invalid characters"
                )
        pairs = "".join(f"{k}={v}{SEPARATOR}" for k, v in fields.items())
        # A rejection is a challenge: Kafka sends the error after a confirmation.
        message = f"n,,{SEPARATOR}{pairs}{SEPARATOR}"
        self._messages = [SEPARATOR.encode(), message.encode()]

    def respond(self, challenge: bytes) -> bytes | None:
        if len(self._messages) == 1 and not challenge:
            return None
        if not self._messages:
            raise ExchangeError("the broker rejects the token, and returns no error")
        return self._messages.pop()
