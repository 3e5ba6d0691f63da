"""Exceptions whose text, attributes or type raise, or that are nested deeply."""

from typing import Any

from sharecons import DeadLetter, Reject, Retry

__all__ = [
    "DEPTH",
    "Invalid",
    "NoAttributes",
    "NoText",
    "Unready",
    "Unwanted",
    "nested_causes",
    "nested_contexts",
    "nested_groups",
    "no_name",
]

DEPTH = 3000


class Invalid(DeadLetter):
    """Without `super().__init__()`."""

    def __init__(self, text: str = "no such customer") -> None:
        self.args = (text,)


class Unwanted(Reject):
    def __init__(self) -> None:
        pass


class Unready(Retry):
    def __init__(self) -> None:
        pass


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class NoAttributes(Exception):
    def __init__(self) -> None:
        super().__init__("bad")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class _NoName(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __hash__(cls) -> int:
        raise RuntimeError("no hash")


class NoName(Exception, metaclass=_NoName):
    pass


def no_name() -> Exception:
    """Return an exception; pytest cannot have its class as a parameter."""
    return NoName("bad")


def nested_causes() -> Exception:
    error = ValueError("1")
    for number in range(2, DEPTH + 1):
        outer = ValueError(str(number))
        outer.__cause__ = error
        error = outer
    return error


def nested_contexts() -> Exception:
    error = ValueError("1")
    for number in range(2, DEPTH + 1):
        outer = ValueError(str(number))
        outer.__context__ = error
        error = outer
    return error


def nested_groups() -> Exception:
    error: Exception = ValueError("1")
    for number in range(2, DEPTH + 1):
        error = ExceptionGroup(str(number), [error, ValueError("beside")])
    return error
