"""`sharecons create-topics`: topics by name, or the copy topics of a worker.

These are the topics that `sharecons run --create-topics` would create, for operators
whose workers are not allowed to. Read `plan` (which topics, with which settings), then
`program` (the requests, and the lines that it writes).
"""

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, copy_topic_options, tables
from sharecons.cli.option_values import Subparsers, parse_new_topic

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import ExitCode

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons create-topics"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "create-topics",
        help="create topics, or the retry and dead-letter topics of a worker",
        description="Create topics, or with --topic the retry topics and the "
        "dead-letter topic of a worker, with the settings that the worker itself would "
        "use with create_topics=True. Topics that exist are compared with the given "
        "numbers or these settings, and stay unchanged. The exit code is 1 if a topic "
        "is not created, has another number than the given one, or has settings with "
        "which records can be lost.",
    )
    add = parser.add_argument
    add(
        "named",
        type=parse_new_topic,
        nargs="*",
        metavar="NAME[:PARTITIONS]",
        help="a topic to create",
    )
    add(
        "--topic",
        dest="sources",
        action="append",
        default=[],
        metavar="TOPIC",
        help="a topic that the worker consumes, and that exists; can be repeated",
    )
    copy_topic_options.add_options(parser)
    add(
        "--partitions",
        type=_parse_count,
        metavar="N",
        help="the partitions of each topic (default: as the consumed topic, or the "
        "brokers' default)",
    )
    add(
        "--replication-factor",
        type=_parse_count,
        metavar="N",
        help="the replicas of each partition (default: as the consumed topic, or the "
        "brokers' default)",
    )
    add(
        "--dry-run",
        action="store_true",
        help="let the brokers check the topics, and create nothing",
    )
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Create the topics; return the exit code."""
    from sharecons.cli.exit_codes import ExitCode, run_with_admin, write_errors
    from sharecons.errors import ConfigurationError

    try:
        work = _work(options)
    except ConfigurationError as error:
        write_errors(PROGRAM, [error])
        return ExitCode.USAGE
    return run_with_admin(PROGRAM, options, work)


def _work(
    options: argparse.Namespace,
) -> "Callable[[ShareGroupAdmin], Awaitable[ExitCode]]":
    """Return the function that creates the topics.

    Raises:
        ConfigurationError: no topic is named, or a name is invalid.
    """
    from sharecons.cli.create_topics.plan import TopicNames, named_topics
    from sharecons.cli.create_topics.program import (
        create_copy_topics,
        create_named_topics,
    )
    from sharecons.errors import ConfigurationError

    has_copies = bool(options.retry_topics or options.dead_letter)
    if options.named:
        if options.sources or has_copies:
            raise ConfigurationError(
                "--topic, --retry-topic and --dead-letter are in a command of their "
                "own, once the topics by name exist"
            )
        new = named_topics(
            options.named, options.partitions, options.replication_factor
        )
        return lambda admin: create_named_topics(admin, new, options)
    if not options.sources:
        raise ConfigurationError(
            "set --topic, a topic that the worker consumes"
            if has_copies
            else "name the topics to create, or the topics of a worker with --topic"
        )
    names = TopicNames.of(options.sources, options.retry_topics, options.dead_letter)
    return lambda admin: create_copy_topics(admin, names, options)


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 15:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 32767")
    return int(text)
