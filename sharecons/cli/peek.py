"""`sharecons peek`: records of a topic, without consuming them."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, output, tables
from sharecons.cli.option_values import Subparsers, parse_count, parse_partition

if TYPE_CHECKING:
    from sharecons._record import Record
    from sharecons.admin import OffsetSpec, ShareGroupAdmin
    from sharecons.cli.exit_codes import ExitCode

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons peek"
DEFAULT_MAX: Final = 10


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "peek",
        help="show records of a topic without consuming them",
        description="Show records of a topic without consuming them: no record is "
        "locked and no delivery is counted. Records of several partitions are sorted "
        "by timestamp.",
    )
    add = parser.add_argument
    add("topic", metavar="TOPIC", help="the topic to read")
    add(
        "--partition",
        type=parse_partition,
        action="append",
        metavar="N",
        help="read only this partition; can be repeated (default: all partitions)",
    )
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--from",
        "--offset",
        dest="begin",
        metavar="WHERE",
        help="where to start: earliest; latest (the newest record of each partition); "
        "an offset; -N (the newest N records); or a time such as 2026-11-21T10:00:00, "
        "UTC without a time zone (default: earliest)",
    )
    begin.add_argument(
        "--group",
        metavar="GROUP",
        help="start at the start offsets of this share group",
    )
    add(
        "--max",
        type=parse_count,
        metavar="N",
        help=f"maximum number of records (default: {DEFAULT_MAX})",
    )
    add(
        "--format",
        choices=("text", "hex", "json"),
        default="text",
        help="format of keys, values and headers (default: %(default)s)",
    )
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read records and write them; return the exit code."""
    from sharecons.cli.exit_codes import run_with_admin

    return run_with_admin(
        PROGRAM, options, lambda admin: _peek(admin, options), topic=options.topic
    )


async def _peek(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "ExitCode":
    from sharecons.cli.exit_codes import exit_code_of, write_errors
    from sharecons.inspection.peek import peek

    start, last = _parse_start(options.begin or "earliest")
    max_records = options.max or (
        last if last and options.begin != "latest" else DEFAULT_MAX
    )
    peeked = await peek(
        admin,
        options.topic,
        start=start,
        last=last,
        group_id=options.group,
        partitions=options.partition,
        max_records=sys.maxsize
        if options.begin == "latest" and not options.max
        else max_records,
    )
    _write_records(peeked.records, options)
    write_errors(PROGRAM, (*peeked.errors.values(), *peeked.damaged))
    return exit_code_of(*peeked.errors.values())


def _write_records(records: "Sequence[Record]", options: argparse.Namespace) -> None:
    from sharecons.cli import record_text

    if options.json:
        rows = [record_text.record_object(each, options.format) for each in records]
        tables.write(rows, (), as_json=True)
        return
    for record in records:
        output.write_raw(f"{record_text.record_line(record, options.format)}\n")


def _parse_start(text: str) -> "tuple[int | OffsetSpec, int | None]":
    """Parse --from; return a start, and the number of newest records or None."""
    from sharecons.admin import OffsetSpec
    from sharecons.config.validation import whole_number
    from sharecons.errors import ConfigurationError

    if text == "earliest":
        return OffsetSpec.EARLIEST, None
    if text == "latest":
        return OffsetSpec.LATEST, 1
    number = whole_number(text)
    if text[:1] == "-" and number:
        return OffsetSpec.LATEST, -number
    if number is not None and text[:1] != "-":
        return number, None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"--from {text!r} is neither earliest, latest, an offset, -N nor a time "
            "such as 2026-11-21T10:00:00"
        ) from None
    return OffsetSpec.at(time if time.tzinfo else time.replace(tzinfo=UTC)), None
