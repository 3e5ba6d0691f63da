"""`sharecons demo`: share groups explained by a 25-second run."""

import argparse
import os
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from sharecons.cli import output
from sharecons.cli.extras import is_missing
from sharecons.cli.option_values import Subparsers, parse_count
from sharecons.escaping import escape
from sharecons.log_levels import without_warnings

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons demo"
SCREENS: Final = {"DISPLAY", "WAYLAND_DISPLAY"}
NAMES: Final = ("ada", "bob", "cleo", "dan", "eve", "finn", "gus", "hana")


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="show in 25 seconds how a share group works",
        description=(
            "Show how a share group works. Several workers, each in a process of its "
            "own, process the jobs of one topic. One fails sometimes and tries its job "
            "again, one is killed, and one job fails until it is a dead letter, which "
            "is then redriven. At the end, the demo checks that each job was done once."
        ),
    )
    parser.add_argument(
        "--bootstrap-server",
        "--bootstrap-servers",
        dest="bootstrap_servers",
        metavar="HOST:PORT",
        help="run on this cluster, Kafka 4.2 or newer (default: an in-memory broker)",
    )
    parser.add_argument(
        "--jobs",
        type=parse_count,
        default=240,
        metavar="N",
        help="number of jobs, about ten per second (default: %(default)s)",
    )
    parser.add_argument(
        "--consumers",
        type=int,
        choices=range(1, len(NAMES) + 1),
        default=4,
        metavar="N",
        help=f"number of workers, up to {len(NAMES)} (default: %(default)s)",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="write lines of text, as when stdout is not a terminal",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="show the demo in the browser as well, on the dashboard, until Ctrl-C",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    # Imported late: the parser of all commands must not import the worker.
    import anyio

    from sharecons.cli import exit_codes
    from sharecons.cli.dashboard import PACKAGES

    if is_missing(PROGRAM, "cli", "rich") or (
        options.open and is_missing(f"{PROGRAM} --open", "dashboard", *PACKAGES)
    ):
        return exit_codes.ExitCode.USAGE
    from sharecons.cli.stop_signals import run_until_signal
    from sharecons.demo.jobs import Jobs
    from sharecons.demo.run import run_demo
    from sharecons.demo.views import LineView, ScreenView
    from sharecons.testing import EmbeddedBroker

    where = options.bootstrap_servers
    title = f"{options.consumers} workers, 1 partition, "
    title += f"Kafka at {escape(where)}" if where else "in-memory broker"
    stdout = output.rich_stdout()
    is_plain = options.plain or not stdout.isatty()
    view = LineView(title, _write) if is_plain else ScreenView(title, stdout)
    passed = False
    ended = False

    async def linger(result: bool) -> None:
        nonlocal ended, passed
        ended, passed = True, result
        _write("The dashboard shows the demo until Ctrl-C.")
        await anyio.sleep_forever()

    async def work() -> None:
        nonlocal passed
        jobs = Jobs(options.jobs, NAMES[: options.consumers])
        async with AsyncExitStack() as stack:
            servers = where
            if servers is None:
                broker = await stack.enter_async_context(EmbeddedBroker())
                servers = broker.bootstrap_servers
            if options.open:
                await stack.enter_async_context(_dashboard(servers))
            passed = await run_demo(
                jobs,
                servers,
                view,
                _write_error,
                linger=linger if options.open else None,
            )

    # The final error line already has the reason.
    with without_warnings("sharecons.net.connect_attempts"):
        code = exit_codes.run(PROGRAM, lambda: run_until_signal(work))
    if ended:  # Ctrl-C ends only the dashboard
        code = exit_codes.ExitCode.SUCCESS
    return code if code or passed else exit_codes.ExitCode.FAILED


@asynccontextmanager
async def _dashboard(servers: str) -> AsyncIterator[None]:
    """Serve a dashboard of the demo's groups, and open it where there is a browser."""
    from anyio import to_thread

    from sharecons.dashboard import create_app
    from sharecons.dashboard.server import listen, serving

    app = create_app(
        bootstrap_servers=servers,
        groups=["sharecons-demo-*"],
        interval=1.0,
        timeout=10.0,
    )
    with listen("127.0.0.1", 0) as listening:
        async with serving(app, listening):
            url = f"http://localhost:{listening.getsockname()[1]}/"
            _write(f"dashboard: {url}")
            # Without a screen it would be a browser in this terminal.
            if sys.platform in ("darwin", "win32") or SCREENS & os.environ.keys():
                await to_thread.run_sync(webbrowser.open, url)
            yield


def _write(line: str) -> None:
    output.write_line(line)
    output.flush()


def _write_error(line: str) -> None:
    output.write_error(f"{PROGRAM}: {line}")
