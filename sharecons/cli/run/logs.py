"""Log lines: text on a terminal, JSON otherwise, and a status line below the text.

A program that configures logging or structlog itself, as its module is imported, keeps
its own format.
"""

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, final

import structlog

from sharecons.escaping import escape
from sharecons.guard import guarded, type_name

__all__ = ["StatusLine", "configure_logs", "is_terminal"]

CLEAR: Final = "\r\x1b[K"
DEFAULT_WIDTH: Final = 80
TEXT_FORMAT: Final = "%(asctime)s %(levelname)-7s %(message)s"


def is_terminal() -> bool:
    """Return whether log lines, which go to stderr, are shown on a terminal."""
    return sys.stderr.isatty()


@final
class StatusLine(logging.Handler):
    """Writes log lines to a terminal, and keeps one line below them."""

    def __init__(self) -> None:
        super().__init__()
        self._status = ""

    def show(self, text: str) -> None:
        """Replace the status line; the empty string removes it.

        It is cut at the width of the terminal: a second line could not be replaced.
        """
        with self._locked():
            self._status = text[: _width() - 1]
            self._write(f"{CLEAR}{self._status}")

    def emit(self, record: logging.LogRecord) -> None:
        text = guarded(
            lambda: self.format(record),
            lambda error: f"{record.levelname} {record.name}: line {record.lineno} of "
            f"{record.pathname} was not formatted: {type_name(error)}",
        )
        text = _escape_lines(text, sys.stderr.encoding or "ascii")
        self._write(f"{CLEAR if self._status else ''}{text}\n{self._status}")

    def _locked(self) -> Any:
        assert self.lock is not None, "created by logging.Handler"
        return self.lock

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal is closed
            sys.stderr.write(text)
            sys.stderr.flush()


def _escape_lines(text: str, encoding: str) -> str:
    """Escape each line; further ones, as of a traceback, are indented.

    So a text with a line break cannot imitate a log line.
    """
    return "\n    ".join(escape(line, encoding) for line in text.split("\n"))


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or DEFAULT_WIDTH
    except OSError:  # no terminal, or it has gone
        return DEFAULT_WIDTH


def configure_logs(process: int | None, level: str) -> StatusLine | None:
    """Configure logging, unless the program has.

    Args:
        process: the index of the process in the logs.
        level: the lowest level that is logged, one of `log_levels.LEVELS`.

    Returns:
        The status line if stderr is a terminal.
    """
    root = logging.getLogger()
    if root.handlers or structlog.is_configured():
        return None
    root.setLevel(level.upper())
    if is_terminal():
        prefix = "" if process is None else f"[{process}] "
        handler = StatusLine()
        handler.setFormatter(logging.Formatter(f"{prefix}{TEXT_FORMAT}", "%H:%M:%S"))
        root.addHandler(handler)
        return handler
    root.addHandler(_json_handler(process))
    return None


def _json_handler(process: int | None) -> logging.Handler:
    def add_process(logger: Any, method: str, event: Any) -> Any:
        if process is not None:
            event["process"] = process
        return event

    shared: Sequence[Any] = (
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso"),
        add_process,
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    return handler
