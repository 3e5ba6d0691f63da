"""`sharecons peek`: records of a topic, without consuming them."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, output, tables

if TYPE_CHECKING:
    from sharecons._record import Record
    from sharecons.admin import OffsetSpec, ShareGroupAdmin
    from sharecons.cli.exit_codes import Exit

    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons peek"
MOST: Final = 10


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "peek",
        help="show records of a topic without consuming them",
        description="Show records of a topic without consuming them: none is locked, "
        "and no delivery is counted. Several partitions are shown in the order of "
        "timestamps.",
    )
    add = parser.add_argument
    add("topic", metavar="TOPIC")
    add(
        "--partition",
        type=_count,
        action="append",
        metavar="N",
        help="this one alone; give it again for more (all)",
    )
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--from",
        "--offset",
        dest="begin",
        metavar="WHERE",
        help="earliest; latest, the newest record of each partition; an offset; -N, "
        "the newest N; or a time, as in 2026-11-21T10:00:00, UTC if no zone is given "
        "(earliest)",
    )
    begin.add_argument(
        "--group", metavar="GROUP", help="from where this share group stands"
    )
    add("--max", type=_number, metavar="N", help=f"records to show ({MOST})")
    add(
        "--format",
        choices=("text", "hex", "json"),
        default="text",
        help="of keys, values and headers (%(default)s)",
    )
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look, and show; gives the exit code."""
    from sharecons.cli.exit_codes import ask

    return ask(PROGRAM, options, lambda admin: _peek(admin, options))


async def _peek(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "Exit":
    from sharecons.cli.exit_codes import complain, exit_of
    from sharecons.inspection.peek import peek

    start, last = _begin(options.begin or "earliest")
    most = options.max or (last if last and options.begin != "latest" else MOST)
    peeked = await peek(
        admin,
        options.topic,
        start=start,
        last=last,
        group_id=options.group,
        partitions=options.partition,
        max_records=sys.maxsize
        if options.begin == "latest" and not options.max
        else most,
    )
    _show(peeked.records, options)
    complain(PROGRAM, (*peeked.errors.values(), *peeked.damaged))
    return exit_of(*peeked.errors.values())


def _show(records: "Sequence[Record]", options: argparse.Namespace) -> None:
    from sharecons.cli import record_text

    if options.json:
        rows = [record_text.record_object(each, options.format) for each in records]
        tables.write(rows, (), as_json=True)
        return
    for record in records:
        output.write_raw(f"{record_text.line(record, options.format)}\n")


def _begin(text: str) -> "tuple[int | OffsetSpec, int | None]":
    """Read where to begin: an offset or what to look up, or how many from the end."""
    from sharecons.admin import OffsetSpec
    from sharecons.errors import ConfigurationError

    if text == "earliest":
        return OffsetSpec.EARLIEST, None
    if text == "latest":
        return OffsetSpec.LATEST, 1
    if text.isdecimal():
        return int(text), None
    if text[:1] == "-" and text[1:].isdecimal() and int(text):
        return OffsetSpec.LATEST, -int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"--from {text!r} is neither earliest, latest, an offset, -N nor a time "
            "such as 2026-11-21T10:00:00"
        ) from None
    return OffsetSpec.at(time if time.tzinfo else time.replace(tzinfo=UTC)), None


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)
