"""Checks that a function can be a handler, before the first record is lost by it.

Calling a generator function runs none of its code, and a function with the wrong number
of arguments fails for every record. Both are found from the signature.
"""

import inspect
from collections.abc import Callable
from typing import Any, cast

from sharecons.config.callables import is_generator
from sharecons.errors import ConfigurationError
from sharecons.guard import function_name

__all__ = ["check_handler"]


def check_handler(handler: object, argument: str = "record") -> Callable[[Any], Any]:
    """Return the handler if it can be called with one argument.

    Args:
        argument: its argument, for the message.

    Raises:
        ConfigurationError: calling it would fail, or would run nothing.
    """
    name = function_name(handler)
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
