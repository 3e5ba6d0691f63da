"""`sharecons produce`: records from lines of standard input.

It has the options of kafka-console-producer.sh that describe records.

Read in this order: `line_format` and `json_lines` (a line to a record, `new_line`),
`line_splitter`, `standard_input`, `failures`, and `program`, which uses them all.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options
from sharecons.cli.format_properties import parse_property
from sharecons.cli.option_values import Subparsers, parse_partition

if TYPE_CHECKING:
    from sharecons.cli.exit_codes import ExitCode
    from sharecons.cli.produce.new_line import NewLine
    from sharecons.cli.produce.program import ProduceLines
    from sharecons.properties.settings import ClientSettings

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons produce"
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

PROPERTY_HELP: Final = (
    "describe the lines; can be repeated: parse.key=true, key.separator=SEP (tab), "
    "parse.headers=true, headers.delimiter=SEP (tab), headers.separator=SEP (comma), "
    "headers.key.separator=SEP (colon), null.marker=TEXT, ignore.error=true"
)


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "produce",
        help="write records from lines of standard input",
        description="Write a record for each line of standard input. A record is "
        "written once, to all in-sync replicas. It has the options of "
        "kafka-console-producer.sh.",
    )
    add = parser.add_argument
    add("topic", metavar="TOPIC", nargs="?", help="the topic to write to")
    add("--topic", dest="topic_option", metavar="TOPIC", help="the same as TOPIC")
    add(
        "--key-separator",
        metavar="SEP",
        help="each line has a key, which ends at the first SEP",
    )
    add(
        "--json",
        action="store_true",
        help='each line is a JSON object: {"key": ..., "value": ..., "headers": '
        "{...}}, as consume --json writes it",
    )
    add(
        "--header",
        type=parse_property,
        action="append",
        default=[],
        dest="headers",
        metavar="NAME=VALUE",
        help="add a header to each record; can be repeated",
    )
    add(
        "--partition",
        type=parse_partition,
        metavar="N",
        help="write to this partition (default: chosen by the key)",
    )
    add(
        "--compression",
        "--compression-codec",
        nargs="?",
        choices=CODECS,
        metavar="CODEC",
        const="gzip",
        default="none",
        help=f"compress batches: {', '.join(CODECS)}; without a value gzip "
        "(default: %(default)s)",
    )
    add(
        "--reader-property",
        "--property",
        dest="reader_properties",
        type=parse_property,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=PROPERTY_HELP,
    )
    add("--reader-config", metavar="FILE", help="a file of such properties")
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Produce the lines of standard input; return the exit code."""
    from sharecons.cli.exit_codes import ExitCode, run_with_client, write_errors
    from sharecons.cli.produce.program import produce_lines
    from sharecons.cli.produce.standard_input import InputError
    from sharecons.errors import ConfigurationError

    def write_error(line: str) -> None:
        write_errors(PROGRAM, [line])

    async def produce(settings: "ClientSettings") -> "ExitCode":
        return await produce_lines(settings, work, write_error)

    try:
        work = _work(options)
        return run_with_client(PROGRAM, options, produce)
    except ConfigurationError as error:
        write_error(str(error))
        return ExitCode.USAGE
    except InputError as error:
        write_error(str(error))
        return ExitCode.FAILED


def _work(options: argparse.Namespace) -> "ProduceLines":
    from sharecons.cli.produce.program import ProduceLines
    from sharecons.errors import ConfigurationError
    from sharecons.records.compression import Codec

    if (options.topic is None) == (options.topic_option is None):
        raise ConfigurationError("name one topic, as TOPIC or with --topic")
    return ProduceLines(
        options.topic or options.topic_option or "",
        _line_parser(options),
        partition=options.partition,
        headers=tuple((name, value.encode()) for name, value in options.headers),
        compression=Codec[options.compression.upper()],
    )


def _line_parser(options: argparse.Namespace) -> "Callable[[bytes], NewLine]":
    from sharecons.cli.format_properties import read_format_properties
    from sharecons.cli.produce.json_lines import parse_json_line
    from sharecons.cli.produce.line_format import PROPERTIES, LineFormat
    from sharecons.errors import ConfigurationError

    properties = read_format_properties(
        options.reader_config,
        options.reader_properties,
        option="--reader-property",
        known=PROPERTIES,
    )
    if options.key_separator is not None:
        properties |= {"parse.key": "true", "key.separator": options.key_separator}
    if not options.json:
        return LineFormat.from_properties(properties).parse
    if properties:
        raise ConfigurationError(
            "--json does not go with --key-separator, --reader-property and "
            "--reader-config"
        )
    return parse_json_line
