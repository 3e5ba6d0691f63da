"""The options that name the retry topics and the dead-letter topic of a worker."""

import argparse
import math

__all__ = ["add_options"]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retry-topic",
        dest="retry_topics",
        type=_parse_retry_topic,
        action="append",
        default=[],
        metavar="NAME[=SECONDS]",
        help="a retry topic, as for `sharecons run`; can be repeated",
    )
    parser.add_argument("--dead-letter", metavar="TOPIC", help="the dead-letter topic")


def _parse_retry_topic(text: str) -> tuple[str, float]:
    """Return the name and the delay; 0.0 without one."""
    name, _, delay = text.partition("=")
    try:
        seconds = float(delay or 0)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SECONDS")
    return name, seconds
