"""Values of options that several commands have, and the type of their parsers."""

import argparse
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = [
    "Subparsers",
    "parse_count",
    "parse_new_topic",
    "parse_partition",
    "parse_port",
    "parse_topic",
    "seconds_between",
]

MAX_DIGITS: Final = 19
"""The digits of the largest offset."""

# A text, since the class cannot be subscripted at run time.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def parse_count(text: str) -> int:
    if not _is_number(text) or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def parse_new_topic(text: str) -> tuple[str, int | None]:
    """Parse NAME or NAME:PARTITIONS; the number is None without one."""
    name, colon, count = text.partition(":")
    if not name or (colon and not (_is_number(count) and int(count))):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:PARTITIONS")
    return name, int(count) if colon else None


def parse_partition(text: str) -> int:
    if not _is_number(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a partition number")
    return int(text)


def parse_port(text: str) -> int:
    if not _is_number(text) or int(text) > 0xFFFF:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def parse_topic(text: str) -> tuple[str, tuple[int, ...] | None]:
    """Parse TOPIC or TOPIC:0,1,2; the partitions are None for all."""
    topic, colon, numbers = text.partition(":")
    if topic and not colon:
        return topic, None
    parts = [part.strip() for part in numbers.split(",")]
    if not topic or not all(map(_is_number, parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is neither TOPIC nor TOPIC:0,1,2")
    return topic, tuple(dict.fromkeys(map(int, parts)))


def seconds_between(minimum: float, maximum: float) -> Callable[[str], float]:
    """Return a parser of seconds within limits."""

    def parse(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not minimum <= seconds <= maximum:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number of seconds from {minimum:g} to {maximum:g}"
            )
        return seconds

    return parse


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
