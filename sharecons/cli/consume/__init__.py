"""`sharecons consume`: records of a share group, one line each.

It has the options of kafka-console-share-consumer.sh.

Read in this order: `formatter` (a record to a line; `deserializers` for its parts),
`standard_output`, and `program`, which consumes and acknowledges.
"""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, output
from sharecons.cli.format_properties import parse_property
from sharecons.cli.option_values import Subparsers, parse_count

if TYPE_CHECKING:
    from sharecons._record import Record
    from sharecons.cli.consume.program import ConsumeOptions
    from sharecons.cli.exit_codes import ExitCode
    from sharecons.properties.settings import ClientSettings

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons consume"

PROPERTY_HELP: Final = (
    "describe the lines; can be repeated: print.timestamp, print.partition, "
    "print.offset, print.delivery, print.epoch, print.headers, print.key=true, "
    "print.value=false, key.separator=SEP (tab), line.separator=SEP (newline), "
    "headers.separator=SEP (comma), null.literal=TEXT (null), "
    "headers.deserializer=NAME"
)


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "consume",
        help="write the records of a share group, and accept them",
        description="Join a share group, write its records, and accept each one once "
        "it is written. It has the options of kafka-console-share-consumer.sh.",
    )
    add = parser.add_argument
    add("topics", metavar="TOPIC", nargs="*", help="a topic to consume")
    add(
        "--topic",
        dest="topic_options",
        action="append",
        default=[],
        metavar="TOPIC",
        help="the same as TOPIC; can be repeated",
    )
    add("--group", required=True, metavar="GROUP", help="the share group")
    _add_limits(parser)
    _add_format(parser)
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        dest="auto_offset_reset",
        action="store_const",
        const="earliest",
        help="the same as --auto-offset-reset earliest",
    )
    start.add_argument(
        "--auto-offset-reset",
        metavar="WHERE",
        help="where the group starts in partitions that it has not consumed: earliest, "
        "latest or by_duration:PT1H; sets its share.auto.offset.reset (default: as it "
        "is; Kafka's is latest)",
    )
    add("--client-id", metavar="ID", help="name for brokers' logs and quotas")
    add(
        "--member-id",
        metavar="ID",
        help="identifies this member: after a restart with the same id it gets its "
        "partitions immediately",
    )
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--max-messages",
        type=parse_count,
        metavar="N",
        help="end after N records (default: no limit)",
    )
    add(
        "--timeout-ms",
        type=client_options.parse_duration,
        metavar="MS",
        help="end if no record arrives for so long: milliseconds, or with a unit as in "
        "20s (default: no limit)",
    )
    action = parser.add_mutually_exclusive_group()
    for name, text in (
        ("release", "release records after they are written"),
        ("reject", "reject records after they are written"),
    ):
        action.add_argument(
            f"--{name}", dest="action", action="store_const", const=name, help=text
        )
    add(
        "--reject-message-on-error",
        action="store_true",
        help="reject records that cannot be deserialized, instead of ending",
    )


def _add_format(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--json",
        action="store_true",
        help="write a JSON object in each line, which produce --json reads",
    )
    add(
        "--formatter-property",
        "--property",
        dest="formatter_properties",
        type=parse_property,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=PROPERTY_HELP,
    )
    add("--formatter-config", metavar="FILE", help="a file of such properties")
    for part in ("key", "value"):
        add(
            f"--{part}-deserializer",
            metavar="NAME",
            help=f"the type of {part}s: string, short, integer, long, float, double, "
            "boolean, uuid, or the name of Kafka's class (default: bytes as they are)",
        )


def run(options: argparse.Namespace) -> int:
    """Write records until a limit or a signal; return the exit code."""
    from sharecons.cli.consume.program import UnwritableRecordError, consume
    from sharecons.cli.exit_codes import ExitCode, run_with_client, write_errors
    from sharecons.errors import ConfigurationError

    def write_error(line: str) -> None:
        write_errors(PROGRAM, [line])

    async def consume_records(settings: "ClientSettings") -> "ExitCode":
        return await consume(
            settings, _consume_options(options), format_record, write_error
        )

    try:
        format_record = _record_format(options)
        return run_with_client(PROGRAM, options, consume_records)
    except ConfigurationError as error:
        write_error(str(error))
        return ExitCode.USAGE
    except UnwritableRecordError as error:
        write_error(str(error))
        return ExitCode.FAILED


def _consume_options(options: argparse.Namespace) -> "ConsumeOptions":
    from math import inf

    from sharecons.cli.consume.program import ConsumeOptions
    from sharecons.errors import ConfigurationError

    topics = (*options.topics, *options.topic_options)
    if not topics:
        raise ConfigurationError("name a topic, as TOPIC or with --topic")
    return ConsumeOptions(
        topics=topics,
        group_id=options.group,
        action=options.action or "accept",
        max_records=options.max_messages or inf,
        silence=options.timeout_ms or inf,
        reject_on_error=options.reject_message_on_error,
        auto_offset_reset=options.auto_offset_reset,
        client_id=options.client_id,
        member_id=options.member_id,
    )


def _record_format(options: argparse.Namespace) -> "Callable[[Record], bytes]":
    from sharecons.cli.consume.formatter import PROPERTIES, RecordFormat, format_json
    from sharecons.cli.format_properties import read_format_properties
    from sharecons.errors import ConfigurationError

    properties = read_format_properties(
        options.formatter_config,
        options.formatter_properties,
        option="--formatter-property",
        known=PROPERTIES,
    )
    for part in ("key", "value"):
        if name := getattr(options, f"{part}_deserializer"):
            properties[f"{part}.deserializer"] = name
    if not options.json:
        encoding = output.encoding() if sys.stdout.isatty() else None
        return RecordFormat(properties, encoding).format
    if properties:
        raise ConfigurationError(
            "--json does not go with formatter properties and deserializers"
        )
    return format_json
