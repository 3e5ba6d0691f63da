"""The content of a line of standard input."""

from typing import NamedTuple

from sharecons._record import Headers

__all__ = ["LineError", "NewLine"]


class LineError(Exception):
    """A line has no record; the message says why, without its number."""


class NewLine(NamedTuple):
    """The record in a line; a timestamp of None is the current time."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
