"""Checks of the arguments of faults: a wrong one would never act, and a test pass."""

from inspect import iscoroutinefunction

__all__ = ["check_choice", "check_function", "check_seconds"]


def check_choice(*, times: object, after: object, where: object) -> None:
    """Check which requests a fault takes.

    Raises:
        TypeError: a number is no int, or `where` is no function.
        ValueError: a number is out of range.
    """
    if times is not None:
        _check_count("times", times, 1)
    _check_count("after", after, 0)
    if where is not None:
        check_function("where", where)
        if iscoroutinefunction(where):
            raise TypeError("where must be a plain function, not a coroutine function")


def check_function(name: str, function: object) -> None:
    """Raise TypeError if it is not a function."""
    if not callable(function):
        raise TypeError(f"{name} needs a function, not {function!r}")


def check_seconds(name: str, seconds: object) -> None:
    """Raise TypeError or ValueError if it is not a number of seconds from 0."""
    if not isinstance(seconds, int | float):
        raise TypeError(f"{name} must be a number of seconds, not {seconds!r}")
    if not seconds >= 0:
        raise ValueError(f"{name} must be at least 0, not {seconds}")


def _check_count(name: str, number: object, minimum: int) -> None:
    if not isinstance(number, int):
        raise TypeError(f"{name} must be an int, not {number!r}")
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {number}")
