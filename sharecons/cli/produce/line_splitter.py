"""Splits standard input into lines, as Java's BufferedReader does."""

import re
from collections.abc import Iterator
from typing import Final

from sharecons.cli.produce.new_line import LineError

__all__ = ["LineSplitter"]

MAX_LINE: Final = 64 << 20
"""Bytes of a line. Longer ones are no records for any topic, and would fill memory."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


class LineSplitter:
    r"""Collects bytes, and returns the lines in them.

    A line ends with \n, \r\n or \r.
    """

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._size = 0
        self._skip_newline = False  # the last line ended with \r

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that these bytes complete, without their ends.

        Raises:
            LineError: a line is too long.
        """
        if not data:
            return
        position = int(self._skip_newline and data.startswith(b"\n"))
        for end in _LINE_END.finditer(data, position):
            self._add(data[position : end.start()])
            position = end.end()
            yield self._take()
        self._skip_newline = data.endswith(b"\r")
        self._add(data[position:])

    def finish(self) -> Iterator[bytes]:
        """Yield the last line, if it has no end."""
        if self._parts:
            yield self._take()

    def _add(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
            self._size += len(part)
        if self._size > self._max_line:
            raise LineError(f"the line is longer than {self._max_line:,} bytes")

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line
