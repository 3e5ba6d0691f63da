"""Levels of loggers, without structlog, which is slow to import."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_warnings"]


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
