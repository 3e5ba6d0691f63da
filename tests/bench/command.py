"""What the programs that benchmark have in common, beside what they measure."""

import argparse
import logging
import signal
import sys
from typing import Any, Final, NoReturn

__all__ = ["BROKER", "heed_signals", "log_with_time", "settings"]

# What a broker in earnest has: time to compile, and memory not to be short of.
BROKER: Final = ("-Xms1g", "-Xmx1g")


def settings(options: argparse.Namespace, *left_out: str) -> dict[str, Any]:
    """Give the options that say how it was measured, not where results are kept."""
    without = {"output", "add", *left_out}
    return {name: value for name, value in vars(options).items() if name not in without}


def log_with_time() -> None:
    logging.basicConfig(
        stream=sys.stdout,
        format="%(asctime)s %(message)s",
        datefmt="%H:%M:%S",
        level=logging.INFO,
    )


def heed_signals() -> None:
    """Have KeyboardInterrupt raised where somebody wants the program to end.

    Also where a shell has SIGINT ignored, as it does for what runs in the background.
    """
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, _leave)


def _leave(signal_number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt  # unwinds as a Ctrl-C does
