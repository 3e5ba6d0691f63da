"""The options of `sharecons groups`, in both ways to say them.

The options of kafka-share-groups.sh (Kafka 4.4.0) stand on `groups` itself, with its
actions as flags; each action is a command as well, with the options that it takes.
Both leave the same names in the namespace, so that one reading serves both.
"""

import argparse
from collections.abc import Callable
from typing import Final

from sharecons.cli import client_options, inspect, tables
from sharecons.version import VERSION

__all__ = ["ACTIONS", "PROGRAM", "fill"]

PROGRAM: Final = "sharecons groups"
ACTIONS: Final = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
"""The actions that kafka-share-groups.sh has as flags."""

GROUP: Final = "a share group; give it again for more"
TOPIC: Final = "a topic, or some of its partitions; give it again for more"
JAVA: Final = "as kafka-share-groups.sh has it"
DATETIME: Final = "YYYY-MM-DDTHH:MM:SS.sss"

Fill = Callable[[argparse.ArgumentParser], None]


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the options and the commands."""
    client_options.add_options(parser)
    tables.add_options(parser)
    parser.add_argument("--version", action="version", version=f"sharecons {VERSION}")
    _add_java(parser.add_argument_group(JAVA).add_argument)
    parser.set_defaults(names=(), type=None, set=None, unset=None)
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command"
    )
    for name, (words, add) in COMMANDS.items():
        command = subparsers.add_parser(name, help=words, description=f"{words}.")
        if add is not _list:
            command.add_argument("names", nargs="*", metavar="GROUP", help="its id")
            command.add_argument("--group", action="append", help=argparse.SUPPRESS)
        add(command)
        tables.add_options(command)
        client_options.add_options(command)
        _inherit(parser, command)
    _inherit(parser, inspect.add_parser(subparsers))


def _inherit(parser: argparse.ArgumentParser, command: argparse.ArgumentParser) -> None:
    """Let an option stand before or behind the command.

    argparse has the defaults of a command override what was said before it.
    """
    above = {action.dest for action in parser._actions}
    for action in command._actions:
        if action.dest in above:
            action.default = argparse.SUPPRESS


def _add_java(add: Callable[..., argparse.Action]) -> None:
    flag = {"action": "store_true"}
    add("--list", **flag, help="the command list")
    add("--describe", **flag, help="the commands offsets, members and state")
    add("--delete", **flag, help="the command delete")
    add("--reset-offsets", **flag, help="the command reset-offsets")
    add("--delete-offsets", **flag, help="the command delete-offsets")
    add("--group", action="append", metavar="GROUP", help=GROUP)
    add("--all-groups", **flag, help="all share groups")
    add("--offsets", **flag, help="describe offsets, as without it")
    add("--members", **flag, help="describe members")
    add(
        "--state",
        nargs="?",
        const="",
        metavar="STATES",
        help="describe the state; or list states, of groups in these (Empty,Stable)",
    )
    add("--verbose", **flag, help="describe more")
    _add_topics(add)
    _add_reset(add)


def _add_topics(add: Callable[..., argparse.Action]) -> None:
    add("--topic", action="append", metavar="TOPIC[:0,1,2]", help=TOPIC)
    add("--all-topics", action="store_true", help="all topics that the group knows")


def _add_reset(add: Callable[..., argparse.Action]) -> None:
    add("--to-earliest", action="store_true", help="to the beginning of the log")
    add("--to-latest", action="store_true", help="to the end of the log")
    add(
        "--to-current",
        action="store_true",
        help="to the present start offset: what is in flight is delivered again",
    )
    add(
        "--to-datetime",
        metavar=DATETIME,
        help="to the first record of this time or later; UTC if no zone is given",
    )
    add(
        "--to-offset",
        metavar="OFFSET",
        type=int,
        help="to this offset, or to the end of the log that is nearest to it",
    )
    add(
        "--from-file",
        metavar="FILE",
        help="to the offsets of a CSV file with the lines TOPIC,PARTITION,OFFSET",
    )
    add(
        "--export",
        action="store_true",
        help="write the new offsets as CSV, for --from-file",
    )
    _add_dry_run(add)
    add("--execute", action="store_true", help="do it")


def _add_dry_run(add: Callable[..., argparse.Action]) -> None:
    add("--dry-run", action="store_true", help="show what would be done")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        nargs="?",
        const="",
        metavar="STATES",
        help="with their states; of groups in these alone (Empty,Stable)",
    )
    parser.add_argument(
        "--type",
        metavar="TYPES",
        help="groups of these types (share,consumer,classic,streams or all)",
    )


def _some(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all-groups", action="store_true", help="all share groups")


def _shown(parser: argparse.ArgumentParser) -> None:
    _some(parser)
    parser.add_argument("--verbose", action="store_true", help="show more")


def _describe(parser: argparse.ArgumentParser) -> None:
    _shown(parser)
    for view in ("offsets", "members", "state"):
        parser.add_argument(f"--{view}", action="store_true", help=f"the {view} alone")


def _configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--set",
        "--add-config",
        dest="set",
        action="append",
        metavar="NAME=VALUE,...",
        help="set configs, as in share.auto.offset.reset=earliest",
    )
    add(
        "--unset",
        "--delete-config",
        dest="unset",
        action="append",
        metavar="NAME,...",
        help="set configs back to their defaults",
    )
    _add_dry_run(add)
    _shown(parser)


def _reset_offsets(parser: argparse.ArgumentParser) -> None:
    _add_topics(parser.add_argument)
    _add_reset(parser.add_argument)


def _delete_offsets(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--topic", action="append", metavar="TOPIC", help=TOPIC)


def _delete(parser: argparse.ArgumentParser) -> None:
    _some(parser)
    _add_dry_run(parser.add_argument)


COMMANDS: Final[dict[str, tuple[str, Fill]]] = {
    "list": ("list share groups", _list),
    "describe": ("show state, members and offsets of groups", _describe),
    "members": ("show the members of groups, and their assignment", _shown),
    "offsets": ("show start offsets and lag of groups", _shown),
    "state": ("show states, coordinators and epochs of groups", _shown),
    "configure": ("show or set configs of groups", _configure),
    "reset-offsets": ("set the start offsets of a group anew", _reset_offsets),
    "delete-offsets": ("make a group forget topics", _delete_offsets),
    "delete": ("delete groups, with all that they know", _delete),
}
