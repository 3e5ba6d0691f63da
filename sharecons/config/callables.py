"""Validation of functions of the application: callbacks, deserializers, handlers."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from sharecons.errors import ConfigurationError

__all__ = ["check_callable", "check_callback", "is_generator", "why_nothing_runs"]


def check_callable(name: str, value: Any) -> Any:
    """Return `value` if it is None or a plain function (not a coroutine function).

    Raises:
        ConfigurationError: it cannot be called, or it is a coroutine function or an
            async generator function (also as a partial or by its `__call__`).
    """
    if value is None:
        return None
    if not callable(value):
        raise ConfigurationError(f"{name} must be callable or None, not {value!r}")
    if _matches_any(value, inspect.iscoroutinefunction, inspect.isasyncgenfunction):
        raise ConfigurationError(
            f"{name} must be a plain function: {value!r} is async, and its result "
            "would not be awaited; await in the loop over the records, or in a "
            "worker's handler, instead"
        )
    return value


def check_callback(name: str, value: Any) -> Any:
    """Check as `check_callable`; also reject generator functions.

    Calling a generator function does not run its body.
    """
    check_callable(name, value)
    if _matches_any(value, inspect.isgeneratorfunction):
        raise ConfigurationError(
            f"{name} must be a plain function: {value!r} is a generator function, "
            "and calling it runs nothing"
        )
    return value


def why_nothing_runs(function: object) -> str:
    """Return why a call of `function` would not run its body; "" if it would.

    Return "async" for coroutine functions and "a generator" for generator functions,
    including partials of one and objects whose `__call__` is one.
    """
    if _matches_any(function, inspect.iscoroutinefunction):
        return "async"
    return "a generator" if is_generator(function) else ""


def is_generator(function: object) -> bool:
    """Return whether a call returns a generator, async or not, and runs nothing."""
    return _matches_any(
        function, inspect.isgeneratorfunction, inspect.isasyncgenfunction
    )


def _matches_any(value: object, *kinds: Callable[[object], bool]) -> bool:
    while isinstance(value, partial):
        value = value.func
    called = getattr(type(value), "__call__", None)  # noqa: B004 (its function)
    return any(kind(value) or kind(called) for kind in kinds)
