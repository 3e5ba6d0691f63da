"""`sharecons exporter`: share groups as Prometheus metrics, in the foreground."""

import argparse
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, output

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import Exit
    from sharecons.config.settings import ClientSettings

    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons exporter"
PORT: Final = 9932
INTERVAL: Final = 15.0
SHORTEST: Final = 0.1


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "exporter",
        help="serve share groups as Prometheus metrics",
        description="Serve lag, age, delivery counts and members of share groups as "
        "Prometheus metrics, until SIGTERM or Ctrl-C. The brokers are asked at "
        "intervals, not by each scrape.",
    )
    add = parser.add_argument
    add("--host", default="0.0.0.0", help="where it listens (%(default)s)")
    add("--port", type=_port, default=PORT, help="0 for a free one (%(default)s)")
    add(
        "--interval",
        type=_seconds,
        default=INTERVAL,
        metavar="SECONDS",
        help="between two looks at the groups (%(default)g)",
    )
    add(
        "--group",
        dest="groups",
        action="append",
        default=[],
        metavar="PATTERN",
        help="groups whose id fits, as in 'billing-*'; give it again for more (all)",
    )
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal ends it; gives the exit code."""
    from sharecons.cli.exit_codes import Exit, ask_with, complain

    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        missing = "it needs prometheus-client: pip install 'sharecons[exporter]'"
        complain(PROGRAM, [missing])
        return Exit.USAGE
    return ask_with(
        PROGRAM, options, lambda admin, settings: _serve(admin, settings, options)
    )


async def _serve(
    admin: "ShareGroupAdmin", settings: "ClientSettings", options: argparse.Namespace
) -> "Exit":
    import signal

    import anyio

    from sharecons.cli.exit_codes import Exit, complain
    from sharecons.exporter.collector import Collector
    from sharecons.exporter.metrics import Metrics
    from sharecons.exporter.reachability import Reachability
    from sharecons.exporter.server import collect_repeatedly, serve_metrics

    metrics = Metrics()
    limit = max(options.interval, settings.timeout)
    collecting = Collector(admin, options.groups, limit)
    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with serve_metrics(metrics, options.host, options.port) as port:
                _announce(options.host, port)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(
                        collect_repeatedly,
                        collecting,
                        Reachability(admin),
                        metrics,
                        options.interval,
                        _say,
                    )
                    async for _ in signals:
                        break
                    tasks.cancel_scope.cancel()
    except (OSError, UnicodeError) as error:
        where = _address(options.host, options.port)
        reason = getattr(error, "strerror", None) or error
        complain(PROGRAM, [f"cannot listen on {where}: {reason}"])
        return Exit.REFUSED
    return Exit.DONE


def _announce(host: str, port: int) -> None:
    output.write_line(f"metrics: http://{_address(host, port)}/metrics")
    output.flush()


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _say(line: str) -> None:
    from sharecons.cli.exit_codes import complain

    complain(PROGRAM, [line])


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 0xFFFF:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not SHORTEST <= seconds <= 86400:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds from {SHORTEST:g} to 86400"
        )
    return seconds
