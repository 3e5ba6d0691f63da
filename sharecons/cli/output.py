"""The only writers to stdout and stderr.

Both escape unsafe characters (see `sharecons.escaping`). When stdout cannot be written,
`OutputError` ends the command, and `run_command` converts it to one line on stderr and
an exit code.
"""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TextIO, cast

from sharecons.escaping import Json, escape, json_text

__all__ = [
    "OutputError",
    "address",
    "encoding",
    "flush",
    "rich_stdout",
    "run_command",
    "write_error",
    "write_json",
    "write_line",
    "write_raw",
]

FAILED: Final = 1
PIPE_CLOSED: Final = 128 + 13
"""The code that shells use for SIGPIPE."""
INTERRUPTED: Final = 128 + 2
"""The code that shells use for SIGINT. All equal codes of `exit_codes.ExitCode`."""


class OutputError(Exception):
    """Standard output cannot be written; `__cause__` is the reason."""


def address(host: str, port: int) -> str:
    """Return a host and port as they are in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def encoding() -> str:
    """Return the encoding of stdout."""
    return sys.stdout.encoding or "ascii"


def write_line(line: str = "") -> None:
    """Write one line to stdout, escaped.

    Raises:
        OutputError: stdout cannot be written.
    """
    _write(f"{escape(line, encoding())}\n")


def write_json(value: Json) -> None:
    """Write a value to stdout as JSON in one line, in ASCII."""
    _write(f"{json_text(value)}\n")


def write_raw(text: str) -> None:
    """Write the program's own text, such as a shell script, unescaped."""
    _write(text)


def flush() -> None:
    """Flush stdout.

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


def rich_stdout() -> TextIO:
    """Return a file for rich that writes to stdout and raises OutputError."""
    return cast("TextIO", _Terminal())


class _Terminal:
    """Stdout, with checked writes."""

    def write(self, text: str) -> int:
        _write(text)
        return len(text)

    def flush(self) -> None:
        flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)


def run_command(program: str, command: Callable[[], int]) -> int:
    """Run a command; return its exit code, or the one for failed output.

    SystemExit, which argparse raises, becomes an exit code as well, and so does Ctrl-C
    while the command's modules are imported.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until the process ends)
    if sys.stdout is None:
        # A socket would get file descriptor 1, and output would go to the socket.
        write_error(f"{program}: standard output is closed")
        return FAILED
    _buffer_stdout()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # a stream that a program has replaced
            cast("Any", stream).reconfigure(errors="backslashreplace")
    try:
        code = _exit_code(command)
        flush()
    except OutputError as error:
        return _output_failed(program, error)
    except BaseExceptionGroup as group:
        failed, others = group.split(OutputError)
        if failed is None or others is not None:
            raise
        return _output_failed(program, _first_error(failed))
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _buffer_stdout() -> None:
    """Add a buffer to stdout if it has none (`python -u`, PYTHONUNBUFFERED).

    Without one, Python writes the part of a text that a pipe or a disk takes, and
    ignores the rest.
    """
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115  (until the process ends)
            sys.stdout.fileno(),
            "w",
            buffering=1,
            encoding=sys.stdout.encoding,
            closefd=False,
        )


def _exit_code(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))


def _output_failed(program: str, error: BaseException) -> int:
    # The interpreter flushes stdout at exit and would fail again.
    _discard(sys.stdout)
    reason = error.__cause__
    if isinstance(reason, BrokenPipeError):
        return PIPE_CLOSED
    words = reason.strerror if isinstance(reason, OSError) else None
    write_error(f"{program}: cannot write to standard output: {words or reason}")
    return FAILED


def _first_error(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def _discard(stream: TextIO) -> None:
    """Discard the rest of a stream's buffer and all later output."""
    with suppress(OSError, ValueError):
        number = stream.fileno()
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, number)
        os.close(devnull)


def _write(text: str) -> None:
    _checked(lambda: sys.stdout.write(text))


def _checked(write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        raise OutputError from error
