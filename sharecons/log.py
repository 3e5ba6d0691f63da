"""Loggers: structlog on top of the standard library's logging, one for each module.

An application that configures neither sees warnings and errors. One that configures
the standard library's logging gets one line of text for each event; its formatter adds
time and level. The log record also has the attributes `event`, the text without fields,
and `fields`, a dictionary. One that configures structlog gets event dictionaries,
processed by its own processors.

docs/logging.md lists all events.
"""

import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

__all__ = ["get_logger"]

_PLAIN: Final = re.compile(r"[\w.:/@+-]+", re.ASCII)


def get_logger(name: str, **context: Any) -> Any:
    """Return a lazy logger: it looks up structlog's configuration when it is used."""
    return structlog.wrap_logger(
        logging.getLogger(name), processors=[_process], **context
    )


def _process(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
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
