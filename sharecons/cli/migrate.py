"""`sharecons migrate`: offsets of a consumer group to a share group, and back."""

import argparse
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, tables
from sharecons.cli.option_values import Subparsers, parse_topic

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import ExitCode
    from sharecons.migration import Migration

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons migrate"
TO_SHARE_GROUP: Final = "to-share-group"
TO_CONSUMER_GROUP: Final = "to-consumer-group"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "migrate",
        help="migrate offsets of a consumer group to a share group, or back",
        description="Migrate the committed offsets of a consumer group to a share "
        "group, or the start offsets of a share group to a consumer group; the type of "
        "SOURCE decides. Both groups must be empty. Without --execute, only show "
        "at which offsets TARGET would start, and how many offsets would be delivered "
        "twice or never. SOURCE is never changed.",
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="the group to read offsets from"
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="the group to set offsets of; created if missing",
    )
    _add_selection_options(parser)
    _add_execution_options(parser)
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def _add_selection_options(parser: argparse.ArgumentParser) -> None:
    direction = parser.add_mutually_exclusive_group()
    for name, group_type in (
        (TO_SHARE_GROUP, "share"),
        (TO_CONSUMER_GROUP, "consumer"),
    ):
        direction.add_argument(
            f"--{name}",
            dest="direction",
            action="store_const",
            const=name,
            help=f"fail unless TARGET becomes a {group_type} group",
        )
    parser.add_argument(
        "--topic",
        dest="topics",
        type=parse_topic,
        action="append",
        metavar="TOPIC[:0,1,2]",
        help="migrate only this topic, or these partitions; can be repeated "
        "(default: all topics of SOURCE)",
    )
    parser.add_argument(
        "--missing",
        choices=("leave", "earliest", "latest"),
        help="where TARGET starts in partitions for which SOURCE has no offset: leave "
        "them to its share.auto.offset.reset or auto.offset.reset, or start at the "
        "beginning or the end of the log; without this option, --execute leaves them, "
        "reports each as an error and exits with 1",
    )


def _add_execution_options(parser: argparse.ArgumentParser) -> None:
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--dry-run", action="store_true", help="show what would change (the default)"
    )
    mode.add_argument("--execute", action="store_true", help="apply the migration")


def run(options: argparse.Namespace) -> int:
    """Plan a migration, and execute it with --execute; return the exit code."""
    from sharecons.cli.exit_codes import run_with_admin

    return run_with_admin(PROGRAM, options, lambda admin: _migrate(admin, options))


async def _migrate(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "ExitCode":
    from sharecons.cli import migration_report as report
    from sharecons.cli.exit_codes import exit_code_of, write_errors

    migration = await _plan(admin, options)
    results = None
    if options.execute and not migration.obstacles:
        from sharecons.migration import execute

        results = await execute(admin, migration)
    report.write(migration, results, as_json=options.json)
    errors: list[BaseException] = [
        *migration.obstacles,
        *report.partition_errors(migration, results).values(),
    ]
    if options.execute and options.missing is None:
        errors += report.missing_position_errors(migration)
    write_errors(PROGRAM, errors)
    return exit_code_of(*errors)


async def _plan(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "Migration":
    from sharecons._record import TopicPartition
    from sharecons.migration import Direction, MissingPolicy, plan

    topics: list[str | TopicPartition] = []
    for name, numbers in options.topics or ():
        some = (TopicPartition(name, number) for number in numbers or ())
        topics += [name] if numbers is None else some
    return await plan(
        admin,
        options.source,
        options.target,
        direction=Direction(options.direction) if options.direction else None,
        topics=topics or None,
        missing=MissingPolicy(options.missing or "leave"),
    )
