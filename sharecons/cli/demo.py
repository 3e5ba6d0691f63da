"""`sharecons demo`: share groups explained by a 25-second run."""

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
        help="show in 25 seconds how a share group works",
        description=(
            "Show how a share group works. Several consumers process the jobs of one "
            "topic. One consumer fails sometimes and releases its job, one is killed, "
            "and one job fails in every consumer until it is rejected. At the end, the "
            "demo checks that each job was accepted or rejected exactly once."
        ),
    )
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="run on this cluster, Kafka 4.2 or newer (default: an in-memory broker)",
    )
    parser.add_argument(
        "--jobs",
        type=_parse_count,
        default=240,
        metavar="N",
        help="number of jobs (default: %(default)s)",
    )
    parser.add_argument(
        "--consumers",
        type=_parse_count,
        default=4,
        metavar="N",
        help="number of consumers (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=_parse_seconds,
        default=25.0,
        metavar="S",
        help="approximate duration, 1 to 3600 (default: %(default)g)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="seed of all random decisions (default: %(default)s)",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="write lines of text, as when stdout is not a terminal",
    )
    parser.add_argument(
        "--backend",
        choices=("asyncio", "trio"),
        default="asyncio",
        help="event loop (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    # Imported late: the parser of all commands must not import the consumer.
    from sharecons.cli.exit_codes import exit_code_of

    program = import_module("sharecons.demo.program")
    code: int = program.run(
        options,
        stdout=output.rich_stdout(),
        write=_write,
        write_error=_write_error,
        exit_code_of=exit_code_of,
    )
    return code


def _write(line: str) -> None:
    output.write_line(line)
    output.flush()


def _write_error(line: str) -> None:
    output.write_error(f"sharecons demo: {line}")


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _parse_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds from 1 to 3600"
        )
    return seconds
