"""Levels of loggers, without structlog, which is slow to import."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["LEVELS", "without_warnings"]

LEVELS: Final = ("debug", "info", "warning", "error")
"""The levels that an application can choose, from all lines to errors only."""


@contextmanager
def without_warnings(name: str) -> Iterator[None]:
    """Suppress a module's warnings, for a program that shows their content itself."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
