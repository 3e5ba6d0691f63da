"""What each SASL mechanism says: PLAIN (RFC 4616), SCRAM (5802), OAUTHBEARER (7628)."""

import re
from typing import Final, Protocol

from sharecons.protocol.sasl.credentials import OAUTHBEARER, PLAIN, Credentials

__all__ = ["Exchange", "ExchangeError", "start_exchange"]

SEPARATOR: Final = "\x01"
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_NAME: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")


class ExchangeError(Exception):
    """One of both sides could not prove who it is; caught before it gets out."""


class Exchange(Protocol):
    """One side of a mechanism's dialogue, the client's."""

    def respond(self, challenge: bytes) -> bytes | None:
        """Give the next bytes; None if the dialogue is over, and all is well.

        The first challenge is empty.

        Raises:
            UnprovenError: the broker proved nothing, or refuses.
        """
        ...


def start_exchange(credentials: Credentials, nonce: str, token: str) -> Exchange:
    """Begin the dialogue that these credentials are for.

    Raises:
        UnprovenError: they cannot be sent.
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
            raise ExchangeError("name and password must have no NUL character in them")
        self._message: bytes | None = "\0".join(parts).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        message, self._message = self._message, None
        return message


class _ScramClient(Protocol):
    """What is used of scramp's."""

    def get_client_first(self) -> str: ...

    def set_server_first(self, message: str) -> None: ...

    def get_client_final(self) -> str: ...

    def set_server_final(self, message: str) -> None: ...


class _Scram:
    """The dialogue is scramp's; only here it is loaded."""

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
            raise ExchangeError(f"name or password: {error}") from error
        self._steps = [self._verify, self._final, self._first]

    def respond(self, challenge: bytes) -> bytes | None:
        try:
            return self._steps.pop()(challenge.decode())
        except (self._error, UnicodeDecodeError) as error:
            raise ExchangeError(f"the broker's answer is no good: {error}") from error

    def _first(self, challenge: str) -> bytes:
        return self._client.get_client_first().encode()

    def _final(self, challenge: str) -> bytes:
        self._client.set_server_first(challenge)
        return self._client.get_client_final().encode()

    def _verify(self, challenge: str) -> None:
        # It knows the password as well, or is not the broker that it says it is.
        self._client.set_server_final(challenge)


class _Bearer:
    def __init__(self, credentials: Credentials, token: str) -> None:
        if not _TOKEN.fullmatch(token):
            raise ExchangeError("the token is none that can be sent (RFC 6750)")
        fields = {"auth": f"Bearer {token}", **credentials.extensions}
        for name, value in credentials.extensions.items():
            if name == "auth" or not _NAME.fullmatch(name):
                raise ExchangeError(f"{name!r} is no name for an extension")
            if not _VALUE.fullmatch(value):
                raise ExchangeError(
                    f"extension {name!r} has a value that cannot be sent"
                )
        pairs = "".join(f"{k}={v}{SEPARATOR}" for k, v in fields.items())
        self._message: bytes | None = f"n,,{SEPARATOR}{pairs}{SEPARATOR}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        message, self._message = self._message, None
        if message is not None or not challenge:
            return message
        # A refusal comes as a challenge: Kafka's error follows when it was confirmed.
        return SEPARATOR.encode()
