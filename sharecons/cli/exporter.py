"""`sharecons exporter`: a Prometheus exporter for share groups."""

import argparse
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, output
from sharecons.cli.extras import is_missing
from sharecons.cli.option_values import Subparsers, parse_port, seconds_between

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import ExitCode
    from sharecons.properties.settings import ClientSettings

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons exporter"
DEFAULT_PORT: Final = 9932
DEFAULT_INTERVAL: Final = 15.0
MIN_INTERVAL: Final = 0.1


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "exporter",
        help="serve share groups as Prometheus metrics",
        description="Serve lag, age, delivery counts and members of share groups as "
        "Prometheus metrics until SIGTERM or Ctrl-C. Metrics are collected at a fixed "
        "interval; a scrape sends no request to the brokers.",
    )
    add = parser.add_argument
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 for all of IPv4, :: for all of IPv6 "
        "and IPv4 (default: %(default)s)",
    )
    add(
        "--port",
        type=parse_port,
        default=DEFAULT_PORT,
        help="port to listen on; 0 for any free port (default: %(default)s)",
    )
    add(
        "--interval",
        type=seconds_between(MIN_INTERVAL, 86400),
        default=DEFAULT_INTERVAL,
        metavar="SECONDS",
        help="time between two collections (default: %(default)g)",
    )
    add(
        "--group",
        dest="groups",
        action="append",
        default=[],
        metavar="PATTERN",
        help="export groups whose ids match this pattern, such as 'billing-*'; can be "
        "repeated (default: all share groups)",
    )
    add(
        "--level",
        choices=("partition", "topic"),
        default="partition",
        help="whether metrics have values of each partition, or of each topic, which "
        "are fewer (default: %(default)s)",
    )
    add(
        "--ledger",
        dest="ledgers",
        action="append",
        default=[],
        metavar="LOCATION",
        help="export the backlog of the Spark query with this ledgerLocation; can be "
        "repeated",
    )
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    from sharecons.cli.exit_codes import ExitCode, run_with_settings

    if is_missing(PROGRAM, "exporter", "prometheus_client"):
        return ExitCode.USAGE
    return run_with_settings(
        PROGRAM, options, lambda admin, settings: _serve(admin, settings, options)
    )


async def _serve(
    admin: "ShareGroupAdmin", settings: "ClientSettings", options: argparse.Namespace
) -> "ExitCode":
    from contextlib import AsyncExitStack

    import anyio

    from sharecons.cli.exit_codes import ExitCode, write_errors
    from sharecons.errors import ConfigurationError
    from sharecons.exporter.collector import Collector
    from sharecons.exporter.ledgers import Ledgers
    from sharecons.exporter.metrics import Level, Metrics
    from sharecons.exporter.server import serve_metrics
    from sharecons.group_state.polling import collect_repeatedly
    from sharecons.group_state.reachability import Reachability

    metrics = Metrics(Level[options.level.upper()])
    limit = max(options.interval, settings.timeout)
    try:
        ledgers = Ledgers(options.ledgers)
    except ConfigurationError as error:
        write_errors(PROGRAM, [f"--ledger: {error}"])
        return ExitCode.USAGE
    collector = Collector(admin, options.groups, limit, ledgers=ledgers)
    from sharecons.stop_signals import received_signals

    with anyio.open_signal_receiver(*received_signals()) as signals:
        async with AsyncExitStack() as stack:
            # Only listening is in this block: collecting can raise OSError as well.
            try:
                port = await stack.enter_async_context(
                    serve_metrics(metrics, options.host, options.port)
                )
            except (OSError, UnicodeError) as error:
                where = output.address(options.host, options.port)
                reason = getattr(error, "strerror", None) or error
                write_errors(PROGRAM, [f"cannot listen on {where}: {reason}"])
                return ExitCode.FAILED
            _write_address(options.host, port)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    collect_repeatedly,
                    collector,
                    Reachability(admin),
                    metrics,
                    options.interval,
                    _write_error,
                )
                async for _ in signals:
                    break
                tasks.cancel_scope.cancel()
    return ExitCode.SUCCESS


def _write_address(host: str, port: int) -> None:
    output.write_line(f"metrics: http://{output.address(host, port)}/metrics")
    output.flush()


def _write_error(line: str) -> None:
    from sharecons.cli.exit_codes import write_errors

    write_errors(PROGRAM, [line])
