"""The options of `sharecons dead-letters`."""

import argparse
from typing import Final

from sharecons.cli import client_options, tables
from sharecons.cli.option_values import Subparsers, parse_count

__all__ = ["DEFAULT_LIMIT", "add_arguments"]

DEFAULT_LIMIT: Final = 100
DEFAULT_MAX_REDRIVES: Final = 3

FILTER_HELP: Final = (
    "only dead letters that pass; can be repeated. FIELD=TEXT compares the whole text, "
    "FIELD~TEXT looks for a part of it in any case. Fields: origin-topic, "
    "origin-partition, group, reason, exception, key, position (such as 0:17), and "
    "since=TIME and until=TIME, between which the dead letter was written (such as "
    "2026-11-21T10:00:00; UTC without a time zone). All fields must pass; of several "
    "filters for one field, one"
)

REDRIVE_EPILOG: Final = (
    "Each dead letter is redriven once for a name, whatever filters its runs have. "
    "Redriven dead letters are marked in the committed offsets of the group "
    "sharecons-redrive.NAME, so an interrupted redrive continues if the command is run "
    "again, even on another machine. A name belongs to one target. Another name "
    "redrives what it has not redriven itself."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    _add_list(actions)
    _add_show(actions)
    _add_redrive(actions)
    _add_delete(actions)


def _add_list(actions: Subparsers) -> None:
    parser = actions.add_parser(
        "list",
        help="list dead letters",
        description="List dead letters, by partition and offset. Nothing is consumed.",
    )
    _add_topic(parser)
    _add_filter(parser)
    redriven = parser.add_mutually_exclusive_group()
    redriven.add_argument(
        "--redriven",
        action="store_true",
        default=None,
        help="only dead letters that a redrive of any name has redriven",
    )
    redriven.add_argument(
        "--not-redriven",
        action="store_false",
        dest="redriven",
        help="only dead letters that no redrive has redriven",
    )
    parser.add_argument(
        "--limit",
        type=parse_count,
        default=DEFAULT_LIMIT,
        metavar="N",
        help="maximum number of dead letters (default: %(default)s)",
    )
    _add_common(parser)


def _add_show(actions: Subparsers) -> None:
    parser = actions.add_parser(
        "show",
        help="show one dead letter",
        description="Show one dead letter: its origin, and the record's key, headers "
        "and value. If a broker wrote only a reference, the record is read from its "
        "topic.",
    )
    _add_topic(parser)
    parser.add_argument(
        "position",
        type=_parse_position,
        metavar="PARTITION:OFFSET",
        help="where the dead letter is, as `list` shows it",
    )
    parser.add_argument(
        "--format",
        choices=("text", "hex", "json"),
        default="text",
        help="format of keys, values and headers (default: %(default)s)",
    )
    _add_common(parser)


def _add_redrive(actions: Subparsers) -> None:
    parser = actions.add_parser(
        "redrive",
        help="write dead letters back to the topics they came from",
        description="Write dead letters back to the topics they came from, each once.",
        epilog=REDRIVE_EPILOG,
    )
    _add_topic(parser)
    _add_filter(parser)
    add = parser.add_argument
    add(
        "--only",
        type=_parse_position,
        action="append",
        metavar="PARTITION:OFFSET",
        help="only this dead letter, as `list` shows it; can be repeated",
    )
    add(
        "--again",
        action="store_true",
        help="with --only: redrive it again if it was redriven before. If this is "
        "interrupted, run it without --again to continue",
    )
    add("--to", metavar="TOPIC", help="write to this topic instead")
    add(
        "--name",
        metavar="NAME",
        help="the name of the redrive (default: TOPIC, or TOPIC.to.TOPIC with --to)",
    )
    add(
        "--dry-run",
        action="store_true",
        help="show what would be written where; write and store nothing",
    )
    add(
        "--max-redrives",
        type=parse_count,
        default=DEFAULT_MAX_REDRIVES,
        metavar="N",
        help="skip dead letters that were redriven so often before, and report how "
        "many (default: %(default)s)",
    )
    add("--rate", type=_parse_rate, metavar="N", help="at most N records per second")
    add(
        "--limit",
        type=parse_count,
        metavar="N",
        help="stop after N dead letters; the next run continues",
    )
    _add_common(parser)


def _add_delete(actions: Subparsers) -> None:
    parser = actions.add_parser(
        "delete",
        help="delete dead letters before an offset",
        description="Delete the dead letters before an offset of a partition, for all "
        "groups and for good. Nothing is deleted if some were not redriven.",
    )
    _add_topic(parser)
    add = parser.add_argument
    add(
        "--before",
        type=_parse_position,
        action="append",
        required=True,
        metavar="PARTITION:OFFSET",
        help="the partition, and the first offset that stays; once for each partition",
    )
    add(
        "--not-redriven",
        action="store_true",
        help="delete dead letters even if no redrive has redriven them",
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument(
        "--dry-run",
        action="store_true",
        help="show what would be deleted, without deleting it",
    )
    mode.add_argument("--execute", action="store_true", help="delete the dead letters")
    _add_common(parser)


def _add_topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="the dead-letter topic")


def _add_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--filter",
        dest="filters",
        action="append",
        default=[],
        metavar="FIELD=TEXT",
        help=FILTER_HELP,
    )


def _add_common(parser: argparse.ArgumentParser) -> None:
    tables.add_options(parser)
    client_options.add_options(parser)


def _parse_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.001 <= rate <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0.001")
    return rate


def _parse_position(text: str) -> tuple[int, int]:
    parts = text.split(":")
    if len(parts) != 2 or not all(p.isascii() and p.isdecimal() for p in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not PARTITION:OFFSET")
    return int(parts[0]), int(parts[1])
