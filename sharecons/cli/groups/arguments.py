"""The options of `sharecons groups`, in both forms.

`sharecons groups` itself has the options of kafka-share-groups.sh (Kafka 4.4.0), with
its actions as flags. Each action is also a command with its own options. Both forms set
the same names in the namespace, so that `request` can parse both.
"""

import argparse
from collections.abc import Callable
from typing import Final

from sharecons.cli import client_options, inspect, tables
from sharecons.version import VERSION

__all__ = ["ACTION_FLAGS", "PROGRAM", "add_arguments"]

PROGRAM: Final = "sharecons groups"
ACTION_FLAGS: Final = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
"""The actions that kafka-share-groups.sh has as flags."""

GROUP_HELP: Final = "a share group; can be repeated"
TOPIC_HELP: Final = "a topic, or some of its partitions; can be repeated"
KAFKA_OPTIONS: Final = "options of kafka-share-groups.sh"
DATETIME_FORMAT: Final = "YYYY-MM-DDTHH:MM:SS.sss"

AddArguments = Callable[[argparse.ArgumentParser], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options and commands of `sharecons groups`."""
    client_options.add_options(parser)
    tables.add_options(parser)
    parser.add_argument("--version", action="version", version=f"sharecons {VERSION}")
    _add_kafka_options(parser.add_argument_group(KAFKA_OPTIONS).add_argument)
    parser.set_defaults(names=(), type=None, set=None, unset=None)
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command"
    )
    for name, (summary, add) in COMMANDS.items():
        command = subparsers.add_parser(
            name, help=summary, description=f"{summary.capitalize()}."
        )
        if add is not _add_list:
            command.add_argument(
                "names",
                nargs="*",
                metavar="GROUP",
                help="the group id",
            )
            command.add_argument("--group", action="append", help=argparse.SUPPRESS)
        add(command)
        tables.add_options(command)
        client_options.add_options(command)
        _allow_before_command(parser, command)
    _allow_before_command(parser, inspect.add_parser(subparsers))


def _allow_before_command(
    parser: argparse.ArgumentParser, command: argparse.ArgumentParser
) -> None:
    """Allow an option of the command before the command as well.

    Without this, the command's default would override the option's value.
    """
    parent_options = {action.dest for action in parser._actions}
    for action in command._actions:
        if action.dest in parent_options:
            action.default = argparse.SUPPRESS


def _add_kafka_options(add: Callable[..., argparse.Action]) -> None:
    flag = {"action": "store_true"}
    add("--list", **flag, help="same as the command list")
    add("--describe", **flag, help="show offsets, members or state of groups")
    add("--delete", **flag, help="same as the command delete")
    add("--reset-offsets", **flag, help="same as the command reset-offsets")
    add("--delete-offsets", **flag, help="same as the command delete-offsets")
    add("--group", action="append", metavar="GROUP", help=GROUP_HELP)
    add("--all-groups", **flag, help="select all share groups")
    add("--offsets", **flag, help="with --describe: show offsets (the default)")
    add("--members", **flag, help="with --describe: show members")
    add(
        "--state",
        nargs="?",
        const="",
        metavar="STATES",
        help="with --describe: show the state; with --list: show states, and only "
        "groups in the given states, such as Empty,Stable",
    )
    add("--verbose", **flag, help="with --describe: show more columns")
    _add_topic_options(add)
    _add_reset_options(add)


def _add_topic_options(add: Callable[..., argparse.Action]) -> None:
    add("--topic", action="append", metavar="TOPIC[:0,1,2]", help=TOPIC_HELP)
    add(
        "--all-topics",
        action="store_true",
        help="select all topics for which the group has offsets",
    )


def _add_reset_options(add: Callable[..., argparse.Action]) -> None:
    add("--to-earliest", action="store_true", help="reset to the beginning of the log")
    add("--to-latest", action="store_true", help="reset to the end of the log")
    add(
        "--to-current",
        action="store_true",
        help="keep the current start offset; records above it are delivered again",
    )
    add(
        "--to-datetime",
        metavar=DATETIME_FORMAT,
        help="reset to the first record at or after this time; UTC without a time zone",
    )
    add(
        "--to-offset",
        metavar="OFFSET",
        type=int,
        help="reset to this offset, limited to the beginning and the end of the log",
    )
    add(
        "--from-file",
        metavar="FILE",
        help="reset to the offsets in a CSV file of lines TOPIC,PARTITION,OFFSET",
    )
    add(
        "--export",
        action="store_true",
        help="write the new offsets as CSV, the format of --from-file",
    )
    _add_dry_run(add)
    add("--execute", action="store_true", help="apply the change")


def _add_dry_run(add: Callable[..., argparse.Action]) -> None:
    add(
        "--dry-run",
        action="store_true",
        help="show what would change, without changing it",
    )


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        nargs="?",
        const="",
        metavar="STATES",
        help="show states; with a value, such as Empty,Stable, list only groups in "
        "these states",
    )
    parser.add_argument(
        "--type",
        metavar="TYPES",
        help="show types; list groups of these types: share, consumer, classic, "
        "streams, or all (default: share)",
    )


def _add_all_groups(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all-groups", action="store_true", help="select all share groups"
    )


def _add_all_groups_and_verbose(parser: argparse.ArgumentParser) -> None:
    _add_all_groups(parser)
    parser.add_argument("--verbose", action="store_true", help="show more columns")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    _add_all_groups_and_verbose(parser)
    for view in ("offsets", "members", "state"):
        parser.add_argument(
            f"--{view}", action="store_true", help=f"show only the {view}"
        )


def _add_configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--set",
        "--add-config",
        dest="set",
        action="append",
        metavar="NAME=VALUE,...",
        help="set configs, such as share.auto.offset.reset=earliest",
    )
    add(
        "--unset",
        "--delete-config",
        dest="unset",
        action="append",
        metavar="NAME,...",
        help="reset configs to their defaults",
    )
    _add_dry_run(add)
    _add_all_groups(parser)
    add(
        "--verbose",
        action="store_true",
        help="show all configs, not only the configs of share groups",
    )


def _add_reset_offsets(parser: argparse.ArgumentParser) -> None:
    _add_topic_options(parser.add_argument)
    _add_reset_options(parser.add_argument)


def _add_delete_offsets(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--topic", action="append", metavar="TOPIC", help="a topic; can be repeated")


def _add_delete(parser: argparse.ArgumentParser) -> None:
    _add_all_groups(parser)
    _add_dry_run(parser.add_argument)


COMMANDS: Final[dict[str, tuple[str, AddArguments]]] = {
    "list": ("list share groups", _add_list),
    "describe": ("show state, members and offsets of groups", _add_describe),
    "members": (
        "show the members of groups and their assignments",
        _add_all_groups_and_verbose,
    ),
    "offsets": ("show start offsets and lag of groups", _add_all_groups_and_verbose),
    "state": (
        "show states, coordinators and epochs of groups",
        _add_all_groups_and_verbose,
    ),
    "configure": ("show or set configs of groups", _add_configure),
    "reset-offsets": ("reset the start offsets of a group", _add_reset_offsets),
    "delete-offsets": (
        "delete the offsets that a group has for topics",
        _add_delete_offsets,
    ),
    "delete": ("delete groups and their offsets", _add_delete),
}
