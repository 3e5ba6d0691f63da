"""Reads standard input without blocking the event loop."""

import os
import sys
from typing import Final

import anyio
from anyio import to_thread

from sharecons.cli import output

__all__ = ["InputError", "StandardInput"]

CHUNK: Final = 256 << 10


class InputError(Exception):
    """Standard input cannot be read; the message says why."""


class StandardInput:
    """The bytes of standard input, with a prompt if a person types them."""

    def __init__(self) -> None:
        if sys.stdin is None:
            raise InputError("standard input is closed")
        self._stream = sys.stdin.buffer
        try:
            self._fd: int | None = sys.stdin.fileno()
        except OSError:
            self._fd = None  # a stream that a program has replaced
        self._can_wait = self._fd is not None
        self._has_prompt = sys.stdin.isatty() and sys.stdout.isatty()

    async def read(self) -> bytes:
        """Return the next bytes, or none at the end.

        Cancelling this loses nothing, if standard input is a pipe or a terminal.

        Raises:
            InputError: it cannot be read.
            OutputError: the prompt cannot be written.
        """
        if self._has_prompt:
            output.write_raw(">")
            output.flush()
        try:
            return await self._read()
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"cannot read standard input: {reason}") from error

    async def _read(self) -> bytes:
        if self._fd is None:
            return await to_thread.run_sync(self._stream.read, CHUNK)
        if self._can_wait:
            try:
                await anyio.wait_readable(self._fd)
                return os.read(self._fd, CHUNK)
            except (PermissionError, NotImplementedError):
                # It is a regular file, which is always readable.
                self._can_wait = False
        return await to_thread.run_sync(os.read, self._fd, CHUNK)
