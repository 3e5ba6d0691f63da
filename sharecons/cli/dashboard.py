"""`sharecons dashboard`: the share groups of a cluster in the browser."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from sharecons.cli import client_options, output
from sharecons.cli.extras import is_missing
from sharecons.cli.option_values import Subparsers, parse_port, seconds_between

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from sharecons.cli.exit_codes import ExitCode
    from sharecons.properties.settings import ClientSettings

__all__ = ["PACKAGES", "add_parser", "run"]

PROGRAM: Final = "sharecons dashboard"
PACKAGES: Final = ("jinja2", "prometheus_client", "rich", "starlette", "uvicorn")
"""Packages of the extra `dashboard`."""
DEFAULT_PORT: Final = 9933
DEFAULT_INTERVAL: Final = 15.0
TOKEN: Final = "SHARECONS_DASHBOARD_TOKEN"
READ_TOKEN: Final = "SHARECONS_DASHBOARD_READ_TOKEN"
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "dashboard",
        help="show share groups in the browser",
        description="Show the share groups of a cluster in the browser until SIGTERM "
        "or Ctrl-C. All pages share one collection at each interval. Without a token "
        "the pages are on this machine only; with the environment variable "
        f"{TOKEN}, who has the token reads them.",
    )
    add = parser.add_argument
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on; any other than the default needs a token "
        "(default: %(default)s)",
    )
    add(
        "--port",
        type=parse_port,
        default=DEFAULT_PORT,
        help="port to listen on; 0 for any free port (default: %(default)s)",
    )
    add(
        "--interval",
        type=seconds_between(0.1, 86400),
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
        help="show groups whose ids match this pattern, such as 'billing-*'; can be "
        "repeated (default: all share groups)",
    )
    add(
        "--worker",
        dest="workers",
        action="append",
        default=[],
        metavar="URL",
        help="show the worker with this health port, such as http://10.0.0.7:9931; "
        "can be repeated",
    )
    add(
        "--allow-changes",
        action="store_true",
        help="allow redrives, deletions, new start offsets and configs on the pages",
    )
    add(
        "--hide-values",
        action="store_true",
        help="show no keys, values and headers of records",
    )
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"read the token from a file instead of {TOKEN}",
    )
    add(
        "--passwords-file",
        type=Path,
        metavar="FILE",
        help="read users from a file, with NAME:PASSWORD in each line; they can do the "
        "same as with the token",
    )
    add(
        "--read-token-file",
        type=Path,
        metavar="FILE",
        help=f"read the token of readers from a file instead of {READ_TOKEN}",
    )
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    from sharecons.cli.exit_codes import ExitCode, run_with_client, write_errors
    from sharecons.errors import ConfigurationError

    if is_missing(PROGRAM, "dashboard", *PACKAGES):
        return ExitCode.USAGE
    try:
        secrets = Secrets(
            _token(options.token_file, TOKEN),
            _token(options.read_token_file, READ_TOKEN),
            _passwords(options.passwords_file),
        )
    except ConfigurationError as error:
        write_errors(PROGRAM, [error])
        return ExitCode.USAGE
    if not any(secrets) and options.host not in LOOPBACK:
        text = f"--host {options.host}: other machines need a token: set {TOKEN}"
        write_errors(PROGRAM, [text])
        return ExitCode.USAGE
    return run_with_client(
        PROGRAM, options, lambda settings: _serve(settings, options, secrets)
    )


class Secrets(NamedTuple):
    """The secrets that requests can have."""

    token: str | None
    read_token: str | None
    passwords: dict[str, str]


def _token(file: Path | None, name: str) -> str | None:
    """Return a token of a file or an environment variable; None if neither is set."""
    from sharecons.errors import ConfigurationError

    if file is None:
        return os.environ.get(name) or None
    token = _text(file)
    if not token:
        raise ConfigurationError(f"{file}: the token is empty")
    return token


def _passwords(file: Path | None) -> dict[str, str]:
    from sharecons.errors import ConfigurationError

    found: dict[str, str] = {}
    lines = _text(file).splitlines() if file else []
    for number, line in enumerate(lines, 1):
        name, _, password = line.partition(":")
        if line.strip() and not (name and password):
            raise ConfigurationError(f"{file}, line {number} is not NAME:PASSWORD")
        if line.strip():
            found[name] = password
    if file and not found:
        raise ConfigurationError(f"{file}: no user has a password")
    return found


def _text(file: Path) -> str:
    from sharecons.errors import ConfigurationError

    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"cannot read {file}: {reason}") from error


async def _serve(
    settings: "ClientSettings",
    options: argparse.Namespace,
    secrets: Secrets,
) -> "ExitCode":
    import anyio

    from sharecons.cli.exit_codes import ExitCode, write_errors
    from sharecons.dashboard.server import listen, serving
    from sharecons.errors import ConfigurationError
    from sharecons.stop_signals import received_signals

    try:
        app = _app(settings, options, secrets)
    except ConfigurationError as error:
        write_errors(PROGRAM, [error])
        return ExitCode.USAGE
    try:
        listening = listen(options.host, options.port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        where = output.address(options.host, options.port)
        write_errors(PROGRAM, [f"cannot listen on {where}: {reason}"])
        return ExitCode.FAILED
    with listening, anyio.open_signal_receiver(*received_signals()) as signals:
        port = listening.getsockname()[1]
        async with serving(app, listening):
            where = output.address(options.host, port)
            output.write_line(f"dashboard: http://{where}/")
            output.flush()
            async for _ in signals:
                break
    return ExitCode.SUCCESS


def _app(
    settings: "ClientSettings",
    options: argparse.Namespace,
    secrets: Secrets,
) -> "Starlette":
    from sharecons.dashboard import create_app

    return create_app(
        bootstrap_servers=settings.bootstrap_servers,
        client_id=settings.client_id,
        security=settings.security,
        timeout=settings.timeout,
        groups=options.groups,
        interval=options.interval,
        workers=options.workers,
        token=secrets.token,
        read_token=secrets.read_token,
        passwords=secrets.passwords,
        allow_changes=options.allow_changes,
        hide_values=options.hide_values,
    )
