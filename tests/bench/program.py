"""Broker options, logging and signals shared by both benchmark programs."""

import argparse
import logging
import signal
import sys
from typing import Any, Final, NoReturn

__all__ = [
    "BROKER_JAVA_OPTIONS",
    "configure_logging",
    "interrupt_on_signals",
    "settings_of",
]

# A fixed heap large enough that garbage collection does not distort the figures. With
# 1 GiB a broker of several measurements stopped responding, at 100 consumers.
BROKER_JAVA_OPTIONS: Final = ("-Xms4g", "-Xmx4g")


def settings_of(options: argparse.Namespace, *excluded: str) -> dict[str, Any]:
    """Return the options to record with the results, without output and excluded."""
    without = {"output", "add", *excluded}
    return {name: value for name, value in vars(options).items() if name not in without}


def configure_logging() -> None:
    logging.basicConfig(
        stream=sys.stdout,
        format="%(asctime)s %(message)s",
        datefmt="%H:%M:%S",
        level=logging.INFO,
    )


def interrupt_on_signals() -> None:
    """Raise KeyboardInterrupt on SIGINT and SIGTERM.

    This includes background jobs, for which shells ignore SIGINT.
    """
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, _interrupt)


def _interrupt(signal_number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt  # runs the cleanup of all context managers
