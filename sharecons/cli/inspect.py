"""`sharecons groups inspect`: the delivery state of each offset of a share group."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, tables
from sharecons.cli.extras import is_missing
from sharecons.cli.option_values import Subparsers, seconds_between

if TYPE_CHECKING:
    from sharecons._record import TopicPartition
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import ExitCode
    from sharecons.inspection import GroupInspection

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons groups inspect"
SUMMARY: Final = (
    "show the delivery state of each offset, and why a group makes no progress"
)


def add_parser(subparsers: Subparsers) -> argparse.ArgumentParser:
    """Add the command; return its parser."""
    parser = subparsers.add_parser(
        "inspect",
        help=SUMMARY,
        description="Show which offsets from the start offset on are acknowledged, "
        "archived or neither, how often they were delivered, how old the oldest of "
        "them is, and why a group makes no progress. This only reads: it locks no "
        "record and changes no state. Only the partition leaders know which records "
        "are locked, so records that are neither acknowledged nor archived are shown "
        "as available or locked. The state ends at the start offset: how many offsets "
        "before it were archived is not stored; the metrics of `sharecons exporter` "
        "and of workers count them.",
    )
    parser.add_argument("name", metavar="GROUP", help="a share group")
    parser.add_argument(
        "--topic",
        action="append",
        metavar="TOPIC[:0,1,2]",
        help="inspect only this topic, or these partitions; can be repeated "
        "(default: all topics of the group)",
    )
    parser.add_argument(
        "--source",
        choices=("auto", "coordinator", "records"),
        default="auto",
        help="get the state from the share coordinator, which requires the "
        "CLUSTER_ACTION permission, or from the records of the topic "
        "__share_group_state, which requires READ; auto takes the first that is "
        "permitted, and reads from the records when old states were last written "
        "(default: %(default)s)",
    )
    _add_output_options(parser)
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)
    return parser


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--offsets",
        action="store_true",
        help="list ranges of offsets with the same state",
    )
    add(
        "--watch",
        type=seconds_between(0.1, 3600),
        nargs="?",
        const=2.0,
        metavar="SECONDS",
        help="repeat until Ctrl-C (default: every 2 s)",
    )
    add("--html", type=Path, metavar="FILE", help="write the picture as an HTML page")
    add("--svg", type=Path, metavar="FILE", help="write the picture as an SVG")
    add(
        "--check",
        action="store_true",
        help="exit with 1 if a partition is stalled, or if a topic that members "
        "subscribe to does not exist",
    )


def run(options: argparse.Namespace) -> int:
    """Inspect a group and write the result; return the exit code."""
    from sharecons.cli.exit_codes import ExitCode, run_with_admin, write_errors

    if options.watch is not None and (options.html or options.svg):
        write_errors(PROGRAM, ["--watch cannot be combined with --html or --svg"])
        return ExitCode.USAGE
    is_picture = not options.json or options.html or options.svg
    if is_picture and is_missing(PROGRAM, "cli", "rich"):
        return ExitCode.USAGE
    return run_with_admin(PROGRAM, options, lambda admin: _run(admin, options))


async def _run(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "ExitCode":
    """Inspect a group; the error of an unknown one says what type it has."""
    from sharecons.cli.exit_codes import exit_code_of, write_errors
    from sharecons.errors import BrokerError

    try:
        return await _inspect(admin, options)
    except BrokerError as error:
        from sharecons.cli.name_hints import lines_about_groups

        lines = await lines_about_groups(admin, {options.name: error})
        write_errors(PROGRAM, lines)
        return exit_code_of(error)


async def _inspect(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "ExitCode":
    if options.watch is not None:
        return await _watch(admin, options)
    from sharecons.cli.exit_codes import exit_code_of, write_errors

    inspection = await _inspect_once(admin, options, None)
    if options.html or options.svg:
        _write_pictures(inspection, options)
    _write(inspection, options)
    write_errors(PROGRAM, (*inspection.partitions.errors.values(), *inspection.unread))
    code = exit_code_of(*inspection.partitions.errors.values())
    return max(code, _stalled_exit_code(inspection)) if options.check else code


def _stalled_exit_code(inspection: "GroupInspection") -> "ExitCode":
    from sharecons.cli.exit_codes import ExitCode
    from sharecons.inspection import Severity

    stalled = any(
        found[0].severity is Severity.STALLED for found in inspection.findings.values()
    ) or bool(inspection.missing_topics)
    return ExitCode.FAILED if stalled else ExitCode.SUCCESS


def _write(inspection: "GroupInspection", options: argparse.Namespace) -> None:
    if options.json:
        from sharecons.cli import inspect_json

        tables.write(inspect_json.objects(inspection), (), as_json=True)
    else:
        from sharecons.cli import inspect_text

        inspect_text.write(inspection, offsets=options.offsets)


def _write_pictures(inspection: "GroupInspection", options: argparse.Namespace) -> None:
    from sharecons.errors import ConfigurationError
    from sharecons.inspection import picture_files

    try:
        if options.html is not None:
            page = picture_files.html_page(inspection, offsets=options.offsets)
            options.html.write_text(page, encoding="utf-8")
        if options.svg is not None:
            svg = picture_files.svg_picture(inspection, offsets=options.offsets)
            options.svg.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write the picture: {error}") from error


async def _watch(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "ExitCode":
    from sharecons.cli import inspect_watch

    async def inspect_once(previous: "GroupInspection | None") -> "GroupInspection":
        return await _inspect_once(admin, options, previous)

    return await inspect_watch.watch(inspect_once, options.watch, as_json=options.json)


async def _inspect_once(
    admin: "ShareGroupAdmin",
    options: argparse.Namespace,
    previous: "GroupInspection | None",
) -> "GroupInspection":
    from sharecons.inspection import StateSource, inspect_group

    topics, partitions = _parse_topics(options.topic or ())
    return await inspect_group(
        admin,
        options.name,
        topics=topics,
        partitions=partitions or None,
        source=StateSource(options.source),
        before=previous,
    )


def _parse_topics(texts: Sequence[str]) -> "tuple[list[str], list[TopicPartition]]":
    from sharecons._record import TopicPartition
    from sharecons.config.validation import whole_number
    from sharecons.errors import ConfigurationError

    topics: list[str] = []
    partitions: list[TopicPartition] = []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not colon:
            topics.append(topic)
            continue
        for number in numbers.split(","):
            partition = whole_number(number.strip())
            if partition is None or partition < 0:
                raise ConfigurationError(
                    f"--topic {text!r} is neither TOPIC nor TOPIC:0,1,2"
                )
            partitions.append(TopicPartition(topic, partition))
    if topics and partitions:
        raise ConfigurationError(
            "--topic: give partitions for every topic, or for none"
        )
    return topics, partitions
