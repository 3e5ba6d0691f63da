"""Writes bytes to standard output without blocking the event loop.

If a pipe is full (`| less`), the consumer must go on sending heartbeats. Nothing is
buffered here: a record is accepted after its bytes have left this process.
"""

import os
import select
import sys
from typing import Final

import anyio

from sharecons.cli import output
from sharecons.cli.output import OutputError

__all__ = ["StandardOutput"]

PIECE: Final = getattr(select, "PIPE_BUF", 512)
"""Bytes that a writable pipe takes without blocking."""


class StandardOutput:
    """Raises OutputError if standard output cannot be written."""

    def __init__(self) -> None:
        output.flush()
        self._stream = sys.stdout.buffer
        try:
            self._fd: int | None = sys.stdout.fileno()
        except OSError:
            self._fd = None  # a stream that a program has replaced

    async def write(self, data: bytes) -> None:
        """Write all bytes; cancelling this can leave a part of them written.

        A cancelled call has not written all of them.
        """
        rest = memoryview(data)
        while rest:
            if not self._is_writable():
                assert self._fd is not None, "it is not writable"
                await anyio.wait_writable(self._fd)
            try:
                rest = rest[self._write(rest) :]
            except OSError as error:
                raise OutputError from error

    def _is_writable(self) -> bool:
        if self._fd is None:
            return True
        try:
            return bool(select.select([], [self._fd], [], 0)[1])
        except (OSError, ValueError):
            return True  # Windows can wait for sockets only

    def _write(self, data: memoryview) -> int:
        if self._fd is not None:
            return os.write(self._fd, data[:PIECE])
        self._stream.write(data)
        self._stream.flush()
        return len(data)
