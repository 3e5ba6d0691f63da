"""Everything that commands write: one writer for each of stdout and stderr.

Both escape what they are given (see `sharecons.escaping`). When stdout cannot be
written, `OutputError` ends the command, and `guarded` turns it into one line on stderr
and an exit code.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TextIO, cast

from sharecons.escaping import Json, escape, json_text

__all__ = [
    "OutputError",
    "encoding",
    "flush",
    "guarded",
    "terminal",
    "write_error",
    "write_json",
    "write_line",
    "write_raw",
]

FAILED: Final = 1
PIPE_CLOSED: Final = 128 + 13
"""As shells show SIGPIPE. `outcome.Exit` names both."""


class OutputError(Exception):
    """Standard output cannot be written; `__cause__` is the reason."""


def encoding() -> str:
    """Return what stdout encodes text with."""
    return sys.stdout.encoding or "ascii"


def write_line(line: str = "") -> None:
    """Write one line to stdout, escaped.

    Raises:
        OutputError: stdout cannot be written.
    """
    _put(f"{escape(line, encoding())}\n")


def write_json(value: Json) -> None:
    """Write a value to stdout as JSON in one line, in ASCII."""
    _put(f"{json_text(value)}\n")


def write_raw(text: str) -> None:
    """Write text of our own, such as a script for a shell, as it stands."""
    _put(text)


def flush() -> None:
    """Send to stdout what is written so far.

    Raises:
        OutputError: stdout cannot be written.
    """
    _checked(sys.stdout.flush)


def write_error(line: str) -> None:
    """Write one line to stderr, escaped; do nothing if stderr cannot be written."""
    try:
        sys.stderr.write(f"{escape(line.rstrip(), sys.stderr.encoding or 'ascii')}\n")
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def terminal() -> TextIO:
    """Return stdout for rich, with OutputError where it cannot be written."""
    return cast("TextIO", _Terminal())


class _Terminal:
    """Stdout, with checked writes."""

    def write(self, text: str) -> int:
        _put(text)
        return len(text)

    def flush(self) -> None:
        flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)


def guarded(program: str, command: Callable[[], int]) -> int:
    """Run a command; return its exit code, or the one for output that failed.

    SystemExit, by which the parser of the options ends, is returned as a code, too.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until the process ends)
    if sys.stdout is None:
        # Sockets would get its number, so that nothing is begun without it.
        write_error(f"{program}: standard output is closed")
        return FAILED
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # not where a program put a stream of its own
            cast("Any", stream).reconfigure(errors="backslashreplace")
    try:
        code = _code(command)
        flush()
    except OutputError as error:
        return _failed(program, error)
    except BaseExceptionGroup as group:
        failed, others = group.split(OutputError)
        if failed is None or others is not None:
            raise
        return _failed(program, _first(failed))
    return code


def _code(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))


def _failed(program: str, error: BaseException) -> int:
    # The interpreter flushes once more at its end, and would fail again.
    _discard(sys.stdout)
    reason = error.__cause__
    if isinstance(reason, BrokenPipeError):
        return PIPE_CLOSED
    words = reason.strerror if isinstance(reason, OSError) else None
    write_error(f"{program}: cannot write to standard output: {words or reason}")
    return FAILED


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def _discard(stream: TextIO) -> None:
    """Let what is left in a stream, and all that follows, go nowhere."""
    with suppress(OSError, ValueError):
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _put(text: str) -> None:
    _checked(lambda: sys.stdout.write(text))


def _checked(write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        raise OutputError from error
