"""Checks that a function can be a handler, before the first record is lost by it.

Calling a generator function runs none of its code, and a function with the wrong number
of arguments fails for every record. Both are found from the signature.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from sharecons.config.callables import is_generator
from sharecons.errors import ConfigurationError

__all__ = ["check_handler", "describe_function"]


def check_handler(handler: object, argument: str = "record") -> Callable[[Any], Any]:
    """Return the handler if it can be called with one argument.

    Args:
        argument: what it is called with, for the message.

    Raises:
        ConfigurationError: calling it would fail, or would run nothing.
    """
    name = describe_function(handler)
    if inspect.isclass(handler):
        raise ConfigurationError(
            f"handler must be a function or an object, but {name} is a class: pass an "
            "instance of it"
        )
    if not callable(handler):
        raise ConfigurationError(
            f"handler must be a function with a {argument} as its argument, or a "
            f"BatchHandler, not {handler!r:.200}"
        )
    if is_generator(handler):
        raise ConfigurationError(
            f"handler {name} contains `yield`, so calling it runs none of its code: "
            "remove the `yield`"
        )
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        return cast("Callable[[Any], Any]", handler)  # a function written in C
    try:
        signature.bind(object())
    except TypeError as error:
        raise ConfigurationError(
            f"handler {name}{signature} cannot be called with one {argument}: {error}"
        ) from None
    return cast("Callable[[Any], Any]", handler)


def describe_function(function: object) -> str:
    """Return the name of a function, for messages."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__
