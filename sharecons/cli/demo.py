"""`sharecons demo`: the idea of share groups in half a minute."""

import argparse
from importlib import import_module
from typing import TYPE_CHECKING

from sharecons.cli import output

if TYPE_CHECKING:
    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "demo",
        help="show what a share group does",
        description=(
            "Show what a share group does: consumers share a topic's jobs; one fails "
            "now and then, one is killed, one job is poison; in the end it adds up."
        ),
    )
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="a Kafka of 4.2 or newer to play on (one inside this process)",
    )
    parser.add_argument(
        "--jobs", type=_count, default=240, help="how many (%(default)s)"
    )
    parser.add_argument(
        "--consumers", type=_count, default=4, help="how many (%(default)s)"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=25.0, help="how long, roughly (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of chance (%(default)s)")
    parser.add_argument(
        "--plain", action="store_true", help="lines of text, as without a terminal"
    )
    parser.add_argument(
        "--backend", choices=("asyncio", "trio"), default="asyncio", help="event loop"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    # Read only now: `--help` of other commands has no use for a consumer.
    program = import_module("sharecons.demo.program")
    code: int = program.run(options, output.terminal(), _write, _complain)
    return code


def _write(line: str) -> None:
    output.write_line(line)
    output.flush()


def _complain(line: str) -> None:
    output.write_error(f"sharecons demo: {line}")


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _seconds(text: str) -> float:
    if not 1 <= (number := float(text)) <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 3600")
    return number
