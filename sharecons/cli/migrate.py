"""`sharecons migrate`: a consumer group's place becomes a share group's, and back."""

import argparse
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, tables

if TYPE_CHECKING:
    from sharecons._record import TopicPartition
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import Exit
    from sharecons.migration import Migration

    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

    Topics = list[str | TopicPartition]

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons migrate"
TO_SHARE_GROUP: Final = "to-share-group"
TO_CONSUMER_GROUP: Final = "to-consumer-group"


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "migrate",
        help="move a consumer group's place to a share group, or back",
        description="Move the place of a consumer group to a share group, or the other "
        "way round, as the kind of the source says. Both must be without members. "
        "Nothing is changed without --execute: it shows where the target would begin, "
        "and what would be delivered twice or not at all. The source stays as it is.",
    )
    parser.add_argument("source", metavar="SOURCE", help="the group to move from")
    parser.add_argument(
        "target", metavar="TARGET", help="the group to move to; made if not there"
    )
    _add_what(parser)
    _add_whether(parser)
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def _add_what(parser: argparse.ArgumentParser) -> None:
    way = parser.add_mutually_exclusive_group()
    for name, what in ((TO_SHARE_GROUP, "share"), (TO_CONSUMER_GROUP, "consumer")):
        way.add_argument(
            f"--{name}",
            dest="direction",
            action="store_const",
            const=name,
            help=f"insist that TARGET is to be a {what} group",
        )
    parser.add_argument(
        "--topic",
        dest="topics",
        type=_topic,
        action="append",
        metavar="TOPIC[:0,1,2]",
        help="move these only; give it again for more (all topics of SOURCE)",
    )
    parser.add_argument(
        "--unplaced",
        choices=("leave", "earliest", "latest"),
        help="where TARGET is to begin in partitions in which SOURCE has no place: "
        "where it would have begun, or at the log's start or end; without this, "
        "--execute leaves them, names them, and exits with 1",
    )


def _add_whether(parser: argparse.ArgumentParser) -> None:
    whether = parser.add_mutually_exclusive_group()
    whether.add_argument(
        "--dry-run", action="store_true", help="show what would be done (the default)"
    )
    whether.add_argument("--execute", action="store_true", help="do it")


def run(options: argparse.Namespace) -> int:
    """Plan, and with --execute carry it out; gives the exit code."""
    from sharecons.cli.exit_codes import ask

    return ask(PROGRAM, options, lambda admin: _migrate(admin, options))


async def _migrate(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "Exit":
    from sharecons.cli import migration_report as report
    from sharecons.cli.exit_codes import complain, exit_of

    planned = await _plan(admin, options)
    results = None
    if options.execute and not planned.obstacles:
        from sharecons.migration import carry_out

        results = await carry_out(admin, planned)
    report.write(planned, results, as_json=options.json)
    errors: list[BaseException] = [
        *planned.obstacles,
        *report.errors(planned, results).values(),
    ]
    if options.execute and options.unplaced is None:
        errors += report.unplaced(planned)
    complain(PROGRAM, errors)
    return exit_of(*errors)


async def _plan(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "Migration":
    from sharecons.migration import Direction, MissingPolicy, plan

    topics = options.topics
    return await plan(
        admin,
        options.source,
        options.target,
        direction=Direction(options.direction) if options.direction else None,
        topics=None if topics is None else [each for some in topics for each in some],
        unplaced=MissingPolicy(options.unplaced or "leave"),
    )


def _topic(text: str) -> "Topics":
    """A topic, or partitions of one."""
    from sharecons._record import TopicPartition

    topic, colon, numbers = text.partition(":")
    if topic and not colon:
        return [topic]
    parts = [part.strip() for part in numbers.split(",")]
    if not topic or not all(part.isdecimal() and part.isascii() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is neither TOPIC nor TOPIC:0,1,2")
    return [TopicPartition(topic, int(part)) for part in dict.fromkeys(parts)]
