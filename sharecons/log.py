"""Loggers: structlog on top of the standard library's logging, one for each module.

An application that configures neither sees warnings and errors. One that configures
the standard library's logging gets one line of text for each event; its formatter adds
time and level. The log record also has the attributes `event`, the text without fields,
and `fields`, a dictionary. One that configures structlog gets event dictionaries,
processed by its own processors.

A line that a handler or a processor of the application fails to write is lost, and
nothing else: records of Kafka must not depend on the disk of the logs.

docs/logging.md lists all events.
"""

import contextlib
import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

__all__ = ["get_logger"]

_PLAIN: Final = re.compile(r"[\w.:/@+-]+", re.ASCII)
_METHODS: Final = frozenset(
    ("debug", "info", "warning", "error", "critical", "exception", "log")
)
_reported: Final[set[str]] = set()
"""The names of loggers whose errors were printed."""


def get_logger(name: str, **context: Any) -> Any:
    """Return a lazy logger: it looks up structlog's configuration when it is used."""
    return structlog.wrap_logger(
        _SafeLogger(logging.getLogger(name)), processors=[_process], **context
    )


class _SafeLogger:
    """A logger whose methods do not raise what the application's handlers raise."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._logger, name)
        if name not in _METHODS:
            return attribute

        def log(*args: Any, **options: Any) -> None:
            try:
                attribute(*args, **options)
            except Exception as error:  # noqa: BLE001 (any of the application's)
                _report(self._logger.name, error)

        return log


def _report(name: str, error: Exception) -> None:
    """Print the first error of a logger to stderr, where there is one."""
    if name in _reported:
        return
    _reported.add(name)
    text = "".join(traceback.format_exception_only(error)).strip()
    line = f"sharecons: the logging of {name} fails, and its lines are lost: {text}\n"
    with contextlib.suppress(Exception):  # stderr is closed, or None
        sys.stderr.write(line)


def _process(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
    try:
        return _process_event(logger, method, event)
    except structlog.DropEvent:
        raise
    except Exception as error:  # noqa: BLE001 (any of the application's)
        _report(logger.name, error)
        raise structlog.DropEvent from None


def _process_event(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
    if not structlog.is_configured():
        return _format_line(logger, method, event)
    result: Any = event
    _format_exception(event, method)
    for processor in structlog.get_config()["processors"]:
        result = processor(logger, method, result)
    return result


def _format_line(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
    """Return the line without time and level, which the formatter adds."""
    level = logging.getLevelNamesMapping().get(method.upper(), logging.ERROR)
    if not logger.isEnabledFor(level):
        raise structlog.DropEvent
    exc_info = event.pop("exc_info", method == "exception")
    text = str(event.pop("event", ""))
    fields = dict(event)
    pairs = [f"{name}={_format_value(value)}" for name, value in fields.items()]
    extra = {"event": text, "fields": fields}
    return (" ".join((text, *pairs)),), {"exc_info": exc_info, "extra": extra}


def _format_exception(event: MutableMapping[str, Any], method: str) -> None:
    """Replace an exception by its traceback as text.

    structlog's renderers print the local variables of a traceback by default: keys and
    values of records, in the frames of handlers and of this package.
    """
    error = event.pop("exc_info", method == "exception")
    if not isinstance(error, BaseException):
        error = sys.exception() if error else None
    if error is not None:
        event["exception"] = "".join(traceback.format_exception(error)).rstrip()


def _format_value(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else repr(text)
