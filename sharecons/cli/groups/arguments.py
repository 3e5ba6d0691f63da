"""The options of `sharecons groups`, as tables, in both forms.

`sharecons groups` itself has the options of kafka-share-groups.sh (Kafka 4.4.0), with
its actions as flags. Each action is also a command with its own options. Both forms set
the same names in the namespace, so that `request` can parse both.
"""

import argparse
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sharecons.cli import client_options, inspect, tables
from sharecons.version import VERSION

__all__ = ["ACTION_FLAGS", "PROGRAM", "add_arguments"]

PROGRAM: Final = "sharecons groups"
ACTION_FLAGS: Final = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
"""The actions that kafka-share-groups.sh has as flags."""

DATETIME_FORMAT: Final = "YYYY-MM-DDTHH:MM:SS.sss"

_FLAG: Final[Mapping[str, Any]] = {"action": "store_true"}


class Option(NamedTuple):
    """An option, under its names; `settings` are the others of `add_argument`."""

    names: tuple[str, ...]
    help: str
    settings: Mapping[str, Any] = _FLAG

    def add_to(self, parser: "argparse._ActionsContainer") -> None:
        parser.add_argument(*self.names, help=self.help, **self.settings)


def _flag(name: str, text: str) -> Option:
    return Option((name,), text)


def _repeated(name: str, metavar: str, text: str) -> Option:
    return Option((name,), text, {"action": "append", "metavar": metavar})


_OPTIONAL_STATES: Final = {"nargs": "?", "const": "", "metavar": "STATES"}
_ALL_GROUPS: Final = _flag("--all-groups", "select all share groups")
_VERBOSE: Final = _flag("--verbose", "show more columns")
_DRY_RUN: Final = _flag("--dry-run", "show what would change, without changing it")
_RESET: Final = (
    _repeated(
        "--topic",
        "TOPIC[:0,1,2]",
        "a topic, or some of its partitions; can be repeated",
    ),
    _flag("--all-topics", "select all topics for which the group has offsets"),
    _flag("--to-earliest", "reset to the beginning of the log"),
    _flag("--to-latest", "reset to the end of the log"),
    _flag(
        "--to-current",
        "keep the current start offset; records above it are delivered again",
    ),
    Option(
        ("--to-datetime",),
        "reset to the first record at or after this time; UTC without a time zone",
        {"metavar": DATETIME_FORMAT},
    ),
    Option(
        ("--to-offset",),
        "reset to this offset, limited to the beginning and the end of the log",
        {"metavar": "OFFSET", "type": int},
    ),
    Option(
        ("--from-file",),
        "reset to the offsets in a CSV file of lines TOPIC,PARTITION,OFFSET",
        {"metavar": "FILE"},
    ),
    _flag("--export", "write the new offsets as CSV, the format of --from-file"),
    _DRY_RUN,
    _flag("--execute", "apply the change"),
)

KAFKA_OPTIONS: Final = (
    _flag("--list", "same as the command list"),
    _flag("--describe", "show offsets, members or state of groups"),
    _flag("--delete", "same as the command delete"),
    _flag("--reset-offsets", "same as the command reset-offsets"),
    _flag("--delete-offsets", "same as the command delete-offsets"),
    _repeated("--group", "GROUP", "a share group; can be repeated"),
    _ALL_GROUPS,
    _flag("--offsets", "with --describe: show offsets (the default)"),
    _flag("--members", "with --describe: show members"),
    Option(
        ("--state",),
        "with --describe: show the state; with --list: show states, and only groups in "
        "the given states, such as Empty,Stable",
        _OPTIONAL_STATES,
    ),
    _flag("--verbose", "with --describe: show more columns"),
    *_RESET,
)

COMMANDS: Final[Mapping[str, tuple[str, tuple[Option, ...]]]] = {
    "list": (
        "list share groups",
        (
            Option(
                ("--state",),
                "show states; with a value, such as Empty,Stable, list only groups in "
                "these states",
                _OPTIONAL_STATES,
            ),
            Option(
                ("--type",),
                "show types; list groups of these types: share, consumer, classic, "
                "streams, or all (default: share)",
                {"metavar": "TYPES"},
            ),
        ),
    ),
    "describe": (
        "show state, members and offsets of groups",
        (
            _ALL_GROUPS,
            _VERBOSE,
            _flag("--offsets", "show only the offsets"),
            _flag("--members", "show only the members"),
            _flag("--state", "show only the state"),
        ),
    ),
    "members": (
        "show the members of groups and their assignments",
        (_ALL_GROUPS, _VERBOSE),
    ),
    "offsets": ("show start offsets and lag of groups", (_ALL_GROUPS, _VERBOSE)),
    "state": (
        "show states, coordinators and epochs of groups",
        (_ALL_GROUPS, _VERBOSE),
    ),
    "configure": (
        "show or set configs of groups",
        (
            Option(
                ("--set", "--add-config"),
                "set configs, such as share.auto.offset.reset=earliest",
                {"dest": "set", "action": "append", "metavar": "NAME=VALUE,..."},
            ),
            Option(
                ("--unset", "--delete-config"),
                "reset configs to their defaults",
                {"dest": "unset", "action": "append", "metavar": "NAME,..."},
            ),
            _DRY_RUN,
            _ALL_GROUPS,
            _flag(
                "--verbose", "show all configs, not only the configs of share groups"
            ),
        ),
    ),
    "reset-offsets": ("reset the start offsets of a group", _RESET),
    "delete-offsets": (
        "delete the offsets that a group has for topics",
        (_repeated("--topic", "TOPIC", "a topic; can be repeated"),),
    ),
    "delete": ("delete groups and their offsets", (_ALL_GROUPS, _DRY_RUN)),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options and commands of `sharecons groups`."""
    client_options.add_options(parser)
    tables.add_options(parser)
    parser.add_argument("--version", action="version", version=f"sharecons {VERSION}")
    group = parser.add_argument_group("options of kafka-share-groups.sh")
    for option in KAFKA_OPTIONS:
        option.add_to(group)
    parser.set_defaults(names=(), type=None, set=None, unset=None)
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command"
    )
    for name, (summary, options) in COMMANDS.items():
        command = subparsers.add_parser(
            name, help=summary, description=f"{summary.capitalize()}."
        )
        if name != "list":
            command.add_argument(
                "names",
                nargs="*",
                metavar="GROUP",
                help="the group id",
            )
            command.add_argument(
                "--group", action="append", metavar="GROUP", help="the same as GROUP"
            )
        for option in options:
            option.add_to(command)
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
