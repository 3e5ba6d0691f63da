"""Loggers: structlog around the standard library's, one for each module.

An application that configured nothing sees warnings and errors; one that
configured structlog gets event dictionaries through its own processors.
"""

import logging
from typing import Any

import structlog

__all__ = ["get_logger"]


def get_logger(name: str, **context: Any) -> Any:
    """Give a lazy logger: what structlog is configured to do is looked up at use."""
    return structlog.wrap_logger(logging.getLogger(name), **context)
