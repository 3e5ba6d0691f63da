"""Loggers: structlog on top of the standard library's logging, one for each module.

An application that configures neither sees warnings and errors. One that configures
the standard library's logging gets one line of text for each event; its formatter adds
time and level. The log record also has the attributes `event`, the text without fields,
and `fields`, a dictionary. One that configures structlog gets event dictionaries,
processed by its own processors.

Handlers and processors of the application that raise cost a log line, and nothing else:
records of Kafka must not depend on the disk of the logs.

docs/log-lines-worker.md and docs/log-lines-clients.md list all events.
"""

import logging
import re
import sys
import time
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, final

import structlog

from sharecons.guard import guarded, text_by, type_name
from sharecons.plain_copy import plain_copy

__all__ = ["GuardedLogger", "get_logger"]

MAX_LINE: Final = 500

INTERVAL: Final = 60.0
"""Seconds between two lines on stderr about lines that are not written."""

_PLAIN: Final = re.compile(r"[\w.:/@+-]+", re.ASCII)


def get_logger(name: str, **context: Any) -> "GuardedLogger":
    """Return a lazy logger: it looks up structlog's configuration when it is used."""
    logger = logging.getLogger(name)
    return GuardedLogger(
        name, structlog.wrap_logger(logger, processors=[_process], **context)
    )


@final
class GuardedLogger:
    """Writes log lines, and raises nothing.

    Filters, handlers, formatters and processors are of the application. A line with an
    exception that cannot be formatted is written without it.
    """

    next_report = 0.0

    def __init__(self, name: str, log: Any) -> None:
        self._name = name
        self._log = log

    def debug(self, event: str, **fields: Any) -> None:
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """Write a line with the exception that is being handled."""
        self._write("error", event, {**fields, "exc_info": sys.exception()})

    def _write(self, method: str, event: str, fields: Mapping[str, Any]) -> None:
        def fail(error: BaseException) -> None:
            if fields.get("exc_info") is None:
                self._report(event, error)
                return
            shown = {key: value for key, value in fields.items() if key != "exc_info"}
            shown["traceback_failed"] = type_name(error)
            self._write(method, event, shown)

        guarded(lambda: getattr(self._log, method)(event, **fields), fail)

    def _report(self, event: str, error: BaseException) -> None:
        """Report on stderr that a line is not written; once in INTERVAL."""
        now = time.monotonic()
        if now >= GuardedLogger.next_report:
            GuardedLogger.next_report = now + INTERVAL
            text = f"{type_name(error)}: {text_by(str, plain_copy(error))}"
            line = f"{self._name}: logging raised {text}; not logged: {event}"
            # Without stderr, or if it is closed, there is nowhere to write.
            guarded(lambda: sys.stderr.write(f"{line[:MAX_LINE]}\n"), lambda _: 0)


def _process(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
    if not structlog.is_configured():
        return _format_line(logger, method, event)
    result: Any = event
    _format_exception(event)
    for processor in structlog.get_config()["processors"]:
        result = processor(logger, method, result)
    return result


def _format_line(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
    """Return the line without time and level, which the formatter adds."""
    level = logging.getLevelNamesMapping().get(method.upper(), logging.ERROR)
    if not logger.isEnabledFor(level):
        raise structlog.DropEvent
    exc_info = event.pop("exc_info", None)
    if exc_info is not None:
        exc_info = plain_copy(exc_info)
        traceback.format_exception(exc_info)  # a handler would hide what this raises
    text = str(event.pop("event", ""))
    fields = dict(event)
    pairs = [f"{name}={_format_value(value)}" for name, value in fields.items()]
    extra = {"event": text, "fields": fields}
    return (" ".join((text, *pairs)),), {"exc_info": exc_info, "extra": extra}


def _format_exception(event: MutableMapping[str, Any]) -> None:
    """Replace an exception by its traceback as text.

    structlog's renderers print the local variables of a traceback by default: keys and
    values of records, in the frames of handlers and of this package.
    """
    error = event.pop("exc_info", None)
    if error is not None:
        lines = traceback.format_exception(plain_copy(error))
        event["exception"] = "".join(lines).rstrip()


def _format_value(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else repr(text)
