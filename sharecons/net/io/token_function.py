"""Calling the application's function that returns OAUTHBEARER tokens."""

from inspect import isawaitable
from typing import Any, Final

import anyio

from sharecons.errors import (
    AuthenticationError,
    ConnectionFailedError,
    RequestTimedOutError,
)
from sharecons.guard import function_name, is_a, raise_exit, text_by, type_name
from sharecons.net.io.callbacks import is_cancellation
from sharecons.plain_copy import plain_copy
from sharecons.protocol.sasl.tokens import TOKEN_RULE, is_token

__all__ = ["TokenFunction"]

TIMEOUT: Final = 10.0
"""Seconds to wait for a token, as `from_endpoint` waits for its server."""

SHARE: Final = 0.8
"""Fraction of the caller's time to wait for a token, so that the caller's error names
the function and not the broker."""


class TokenFunction:
    """A token function, which can return or raise anything, or never end.

    Args:
        function: plain or async.
        broker: for which broker the token is, for messages.
    """

    def __init__(self, function: Any, broker: str) -> None:
        self._function = function
        self._what = (
            f"connecting to {broker}: the token function in `security` "
            f"({function_name(function)})"
        )

    async def __call__(self) -> str:
        """Return a token.

        Raises:
            AuthenticationError: the function returned something else.
            ConnectionFailedError: it raised.
            RequestTimedOutError: it did not end in time.
        """
        token = await self._call()
        if is_token(token):
            return str(token)
        # The value can be a secret, so the message has its type only.
        name = type_name(token)
        kind = "None" if token is None else f"{_article(name)} {name}"
        if is_a(token, str):
            kind = "a str with other characters" if token else "an empty str"
        raise AuthenticationError(f"{self._what} returned {kind}; {TOKEN_RULE}")

    async def _call(self) -> object:
        try:
            token = self._function()
            must_wait = isawaitable(token)
        except BaseException as error:
            raise self._failure(error) from error
        return await self._wait(token) if must_wait else token

    async def _wait(self, token: Any) -> object:
        left = anyio.current_effective_deadline() - anyio.current_time()
        timeout = max(0.0, min(TIMEOUT, SHARE * left))
        with anyio.move_on_after(timeout):
            try:
                return await token
            except BaseException as error:
                if is_cancellation(error):
                    raise
                raise self._failure(error) from error
        raise RequestTimedOutError(
            f"{self._what} did not return within {timeout:.2g} s"
        )

    def _failure(self, error: BaseException) -> ConnectionFailedError:
        raise_exit(error)
        text = text_by(str, plain_copy(error))
        return ConnectionFailedError(f"{self._what} raised {type_name(error)}: {text}")


def _article(name: str) -> str:
    return "an" if name[0].lower() in "aeiou" else "a"
