"""The options of `sharecons run`.

The worker's options come from the entries in its settings (`sharecons.config.options`).
"""

import argparse
import math
from collections.abc import Callable
from typing import Any, Final

from sharecons.cli import client_options
from sharecons.cli.option_values import parse_port
from sharecons.config.options import Flag, Option, options_of
from sharecons.log_levels import LEVELS
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.settings import WorkerSettings

__all__ = ["PROGRAM", "add_arguments", "given_flags", "given_options"]

PROGRAM: Final = "sharecons run"
DEFAULT_GRACE: Final = 30.0
MAX_PROCESSES: Final = 256
GRACE: Final = "--grace"
"""An option of the command: its worker has one even if it is a ShareWorker."""

NOT_GIVEN: Final[tuple[object, ...]] = (None, False, [])

TABLES: Final = (WorkerSettings, RetryPolicy, HandlerSettings, HealthPolicy)

OTHER_FLAGS: Final = {
    "auto_offset_reset": "--auto-offset-reset",
    "bootstrap_servers": "--bootstrap-server",
    "command_config": "--command-config",
    "command_properties": "--command-property",
    "timeout": "--timeout",
}


def given_flags(options: argparse.Namespace) -> list[str]:
    """Return the given options that configure a worker, which it can have itself."""
    flags = {"topics": "--topic", "group": "--group"}
    flags |= {
        entry.flag.dest: entry.flag.name
        for table in TABLES
        for entry in options_of(table).values()
        if entry.flag is not None and entry.flag.name != GRACE
    }
    flags |= OTHER_FLAGS
    return [flag for dest, flag in flags.items() if getattr(options, dest)]


def given_options(options: argparse.Namespace, table: type) -> dict[str, Any]:
    """Return the options in a table that are given; others keep their defaults."""
    values = {
        name: getattr(options, entry.flag.dest)
        for name, entry in options_of(table).items()
        if entry.flag is not None
    }
    return {name: value for name, value in values.items() if value not in NOT_GIVEN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="MODULE:HANDLER",
        help="a handler: a function with a record as its argument, async or not; or a "
        "ShareWorker; or a function without arguments that returns a ShareWorker. The "
        "module is also looked for in the working directory",
    )
    _add_worker_options(parser)
    _add_process_options(parser)
    client_options.add_options(parser)


def _add_worker_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "worker", "These options cannot be combined with a ShareWorker."
    ).add_argument
    add(
        "--topic",
        dest="topics",
        action="append",
        default=[],
        metavar="TOPIC",
        help="consume this topic; can be repeated",
    )
    add("--group", metavar="GROUP", help="the share group")
    for table in TABLES:
        for entry in options_of(table).values():
            if entry.flag is not None and entry.flag.name != GRACE:
                _add_flag(add, entry, entry.flag)
    add(
        "--auto-offset-reset",
        metavar="RESET",
        help="set where the group starts in a partition that is new to it: earliest, "
        "latest or by_duration:PT1H; none leaves the group unchanged (default: "
        "earliest, unless the group has a value of its own)",
    )


def _add_flag(add: Callable[..., object], entry: Option, flag: Flag) -> None:
    """Add an option that is None, False or empty if it is not given."""
    text = entry.summary.replace("%", "%%")
    if flag.metavar is None:
        add(flag.name, action="store_true", help=text)
        return
    default = "" if entry.default in ("None", "none") else entry.default
    text += "; can be repeated" if flag.is_repeatable else ""
    repeated = {"action": "append", "default": []} if flag.is_repeatable else {}
    add(
        flag.name,
        type=PARSERS.get(flag.metavar, str),
        metavar=flag.metavar,
        help=f"{text} (default: {default})" if default else text,
        **repeated,
    )


def _add_process_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("processes").add_argument
    add(
        "--processes",
        type=_parse_processes,
        default=1,
        metavar="N",
        help="run N processes, each a member of the group (default: 1)",
    )
    add(
        "--member-id",
        metavar="NAME",
        help="a name that no other command of the group has, such as a pod's name; "
        "process I is the member NAME-I (default: host name and process id)",
    )
    add(
        GRACE,
        type=_parse_seconds,
        default=DEFAULT_GRACE,
        metavar="SECONDS",
        help="time for handlers to finish when the command stops (default: "
        "%(default)g); at least the shutdown_grace of a ShareWorker",
    )
    add(
        "--health-port",
        type=parse_port,
        metavar="PORT",
        help="serve /livez, /readyz and /metrics of all processes; 0 for any free "
        "port; requires sharecons[exporter]",
    )
    add(
        "--health-host",
        metavar="HOST",
        default="127.0.0.1",
        help="the address of the health port; 0.0.0.0 for all of IPv4, :: for all of "
        "IPv6 and IPv4, as probes of Kubernetes need (default: %(default)s)",
    )
    add(
        "--log-level",
        choices=LEVELS,
        default="info",
        metavar="LEVEL",
        help=f"the lowest level that is logged: {', '.join(LEVELS)} (default: "
        "%(default)s)",
    )
    add(
        "--reload",
        action="store_true",
        help="restart when a .py file in the working directory changes; requires "
        "sharecons[reload]",
    )
    # The supervisor passes these to its processes.
    add("--process", type=int, help=argparse.SUPPRESS)
    add("--running-records", type=int, help=argparse.SUPPRESS)


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _parse_processes(text: str) -> int:
    count = _parse_count(text)
    if count > MAX_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text} is more than {MAX_PROCESSES}")
    return count


def _parse_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _parse_retry_topic(text: str) -> tuple[str, float]:
    name, equals, seconds = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SECONDS")
    return name, _parse_seconds(seconds)


PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "N": _parse_count,
    "SECONDS": _parse_seconds,
    "NAME=SECONDS": _parse_retry_topic,
}
"""The parsers of values by the names that the help has for them; others are text."""
