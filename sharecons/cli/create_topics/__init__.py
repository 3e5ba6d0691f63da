"""`sharecons create-topics`: the retry topics and the dead-letter topic of a worker.

It creates the topics that `sharecons run --create-topics` would create, for operators
whose workers are not allowed to. Read `plan` (which topics, with which settings), then
`program` (the requests, and the lines that it writes).
"""

import argparse
from typing import Final

from sharecons.cli import client_options, copy_topic_options, tables
from sharecons.cli.option_values import Subparsers

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons create-topics"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "create-topics",
        help="create the retry topics and the dead-letter topic of a worker",
        description="Create the retry topics and the dead-letter topic of a worker, "
        "with the settings that the worker itself would use with create_topics=True. "
        "Topics that exist are compared with these settings and "
        "stay unchanged. The exit code is 1 if a topic is not created, or has settings "
        "with which records can be lost.",
    )
    add = parser.add_argument
    add(
        "--topic",
        dest="topics",
        action="append",
        required=True,
        metavar="TOPIC",
        help="a topic that the worker consumes; can be repeated",
    )
    copy_topic_options.add_options(parser)
    add(
        "--partitions",
        type=_parse_count,
        metavar="N",
        help="the partitions of each topic (default: as the consumed topic)",
    )
    add(
        "--replication-factor",
        type=_parse_count,
        metavar="N",
        help="the replicas of each partition (default: as the consumed topic)",
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
    from sharecons.cli.create_topics.plan import TopicNames
    from sharecons.cli.create_topics.program import create_copy_topics
    from sharecons.cli.exit_codes import ExitCode, run_with_admin, write_errors
    from sharecons.errors import ConfigurationError

    try:
        names = TopicNames.of(options.topics, options.retry_topics, options.dead_letter)
    except ConfigurationError as error:
        write_errors(PROGRAM, [error])
        return ExitCode.USAGE
    return run_with_admin(
        PROGRAM, options, lambda admin: create_copy_topics(admin, names, options)
    )


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 15:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 32767")
    return int(text)
