"""Loggers: structlog on top of the standard library's logging, one for each module.

An application that configures neither sees warnings and errors. One that configures
the standard library's logging gets one line of text for each event; its formatter adds
time and level. One that configures structlog gets event dictionaries, processed by its
own processors.
"""

import logging
import re
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
    for processor in structlog.get_config()["processors"]:
        result = processor(logger, method, result)
    return result


def _format_line(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
    """Return the line without time and level, which the formatter adds."""
    level = logging.getLevelNamesMapping().get(method.upper(), logging.ERROR)
    if not logger.isEnabledFor(level):
        raise structlog.DropEvent
    exc_info = event.pop("exc_info", method == "exception")
    fields = [str(event.pop("event", ""))]
    fields += [f"{name}={_format_value(value)}" for name, value in event.items()]
    return (" ".join(fields),), {"exc_info": exc_info}


def _format_value(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else repr(text)
