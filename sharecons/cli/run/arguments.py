"""The options of `sharecons run`."""

import argparse
import math
from typing import Final

from sharecons.cli import client_options
from sharecons.log_levels import LEVELS

__all__ = ["PROGRAM", "WORKER_OPTIONS", "add_arguments"]

PROGRAM: Final = "sharecons run"
DEFAULT_GRACE: Final = 30.0
MAX_PROCESSES: Final = 256

WORKER_OPTIONS: Final = (
    "topics",
    "group",
    "concurrency",
    "max_attempts",
    "retry_initial",
    "retry_maximum",
    "retry_topics",
    "dead_letter",
    "create_topics",
    "key_order",
    "handler_timeout",
    "max_lock_time",
    "stuck_after",
    "window_held_after",
    "liveness",
    "ignored",
    "auto_offset_reset",
    "bootstrap_servers",
    "command_config",
    "command_properties",
    "timeout",
)
"""The options that configure a worker. They are None, False or empty if not given, so
that they can be rejected with a worker that is configured already."""


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
    add(
        "--concurrency",
        type=_parse_count,
        metavar="N",
        help="handlers that run at a time in each process (default: 10)",
    )
    add(
        "--max-attempts",
        type=_parse_count,
        metavar="N",
        help="calls of the handler for a record, in all (default: 5)",
    )
    add(
        "--retry-initial",
        type=_parse_seconds,
        metavar="SECONDS",
        help="delay of the first retry; each further one is twice as long (default: 1)",
    )
    add(
        "--retry-maximum",
        type=_parse_seconds,
        metavar="SECONDS",
        help="longest delay of a retry (default: 60)",
    )
    add(
        "--retry-topic",
        dest="retry_topics",
        type=_parse_retry_topic,
        action="append",
        default=[],
        metavar="NAME=SECONDS",
        help="a topic for records that wait about so long, and would otherwise stall "
        "their partition; can be repeated",
    )
    add(
        "--dead-letter",
        metavar="TOPIC",
        help="write records to this topic that failed in their last attempt",
    )
    add(
        "--create-topics",
        action="store_true",
        help="create the retry topics and the dead-letter topic if they do not exist",
    )
    add(
        "--key-order",
        action="store_true",
        help="process records with the same key one after the other in each process",
    )
    add(
        "--handler-timeout",
        type=_parse_seconds,
        metavar="SECONDS",
        help="time for one call of the handler; then it is cancelled, and the attempt "
        "has failed (default: no limit)",
    )
    add(
        "--max-lock-time",
        type=_parse_seconds,
        metavar="SECONDS",
        help="time for which a record is held in all, waits included (default: a day)",
    )
    add(
        "--stuck-after",
        type=_parse_seconds,
        metavar="SECONDS",
        help="time for one call of the handler, and for what follows its timeout; then "
        "/livez and /readyz fail (default: no limit)",
    )
    add(
        "--window-held-after",
        type=_parse_seconds,
        metavar="SECONDS",
        help="time for which one record can hold up its partition; then /readyz fails "
        "(default: 60)",
    )
    add(
        "--liveness",
        action="append",
        default=[],
        metavar="CONDITION",
        help="a condition that fails /livez; can be repeated (default: blocked-loop "
        "and stuck-handler)",
    )
    add(
        "--ignore-condition",
        dest="ignored",
        action="append",
        default=[],
        metavar="CONDITION",
        help="a condition that does not fail /readyz; can be repeated",
    )
    add(
        "--auto-offset-reset",
        metavar="RESET",
        help="set where the group starts in a partition that is new to it: earliest, "
        "latest or by_duration:PT1H; none leaves the group unchanged (default: "
        "earliest, unless the group has a value of its own)",
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
        "--grace",
        type=_parse_seconds,
        default=DEFAULT_GRACE,
        metavar="SECONDS",
        help="time for handlers to finish when the command stops (default: "
        "%(default)g); at least the shutdown_grace of a ShareWorker",
    )
    add(
        "--health-port",
        type=_parse_port,
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


def _parse_port(text: str) -> int:
    if not text.isdecimal() or int(text) > 0xFFFF:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)
