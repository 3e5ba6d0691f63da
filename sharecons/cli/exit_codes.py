"""Exit codes of commands, and the error lines that go with them.

    def run(options):
        return run_with_admin(PROGRAM, options, lambda admin: peek(admin, options))

    async def peek(admin, options) -> ExitCode: ...

A command writes one line to stderr for each error and ends with an exit code that a
script can act on. An error in one group or partition does not stop the others.
"""

import enum
import signal
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from sharecons.cli.output import write_error
from sharecons.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    ConnectionFailedError,
    Error,
    UnsupportedVersionError,
)
from sharecons.log_levels import without_warnings

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.properties.settings import ClientSettings

__all__ = [
    "ExitCode",
    "exit_code_of",
    "run",
    "run_with_admin",
    "run_with_client",
    "run_with_settings",
    "write_errors",
]

CONNECT_TIMEOUT: Final = 3.0
"""Seconds to connect to a first broker. A wrong address fails after this time."""


class ExitCode(enum.IntEnum):
    """Exit codes of all commands; docs/command-line.md explains them to users."""

    SUCCESS = 0
    """The command did all that was requested."""
    FAILED = 1
    """An item was rejected or does not exist; the command did the rest.

    Also: standard output could not be written."""
    USAGE = 2
    """Options, environment or properties are invalid; no request was sent."""
    UNREACHABLE = 3
    """No broker could be reached, or it did not respond in time."""
    FORBIDDEN = 4
    """Authentication failed, or an ACL denies the operation."""
    UNSUPPORTED = 5
    """The brokers do not support the request."""
    INTERRUPTED = 128 + signal.SIGINT
    """Ctrl-C; shells use this code for SIGINT."""
    TERMINATED = 128 + signal.SIGTERM
    """SIGTERM ended a command before its work was done."""
    PIPE_CLOSED = 128 + 13
    """The reader of a pipe exited, as `head` does; shells use this code for SIGPIPE."""


_EXIT_CODES = (
    (ConfigurationError, ExitCode.USAGE),
    (ConnectionFailedError, ExitCode.UNREACHABLE),
    (AuthenticationError, ExitCode.FORBIDDEN),
    (AuthorizationError, ExitCode.FORBIDDEN),
    (UnsupportedVersionError, ExitCode.UNSUPPORTED),
)


def exit_code_of(*errors: BaseException) -> ExitCode:
    """Return the exit code for errors; for several errors, the highest code."""
    return max((_exit_code_of_one(error) for error in errors), default=ExitCode.SUCCESS)


def _exit_code_of_one(error: BaseException) -> ExitCode:
    return next(
        (code for kind, code in _EXIT_CODES if isinstance(error, kind)), ExitCode.FAILED
    )


def write_errors(program: str, errors: Iterable[BaseException | str]) -> None:
    """Write one line to stderr for each error; write equal lines once."""
    for line in dict.fromkeys(str(error) for error in errors):
        write_error(f"{program}: {line}")


def run(program: str, work: Callable[[], Awaitable[ExitCode]]) -> ExitCode:
    """Run a command's coroutine; return the exit code."""
    import anyio

    try:
        return anyio.run(work)
    except Error as error:
        write_errors(program, [error])
        return exit_code_of(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def run_with_admin(
    program: str,
    options: Namespace,
    work: Callable[["ShareGroupAdmin"], Awaitable[ExitCode]],
    *,
    topic: str | None = None,
) -> ExitCode:
    """Run `work` with an admin client for the cluster that the options name.

    Args:
        topic: the work's topic. The error of an unknown one names a similar topic.
    """

    async def with_hint(admin: "ShareGroupAdmin") -> ExitCode:
        try:
            return await work(admin)
        except BrokerError as error:
            from sharecons.cli.name_hints import lines_about_topics

            named = {topic or "": error}
            write_errors(program, await lines_about_topics(admin, named))
            return exit_code_of(error)

    named_work = work if topic is None else with_hint
    return run_with_settings(program, options, lambda admin, _: named_work(admin))


def run_with_settings(
    program: str,
    options: Namespace,
    work: Callable[["ShareGroupAdmin", "ClientSettings"], Awaitable[ExitCode]],
) -> ExitCode:
    """Run `work` like `run_with_admin`, and pass it the client settings as well."""
    return run_with_client(
        program, options, lambda settings: _open_admin(settings, work)
    )


def run_with_client(
    program: str,
    options: Namespace,
    work: Callable[["ClientSettings"], Awaitable[ExitCode]],
) -> ExitCode:
    """Run `work` with the settings for a client of its own."""
    from sharecons.cli import client_options

    try:
        settings = client_options.load_settings(options)
    except Error as error:
        write_errors(program, [error])
        return ExitCode.USAGE
    # The final error line already has the reason.
    with without_warnings("sharecons.net.connect_attempts"):
        return run(program, lambda: work(settings))


async def _open_admin(
    settings: "ClientSettings",
    work: Callable[["ShareGroupAdmin", "ClientSettings"], Awaitable[ExitCode]],
) -> ExitCode:
    from sharecons.admin import ShareGroupAdmin

    async with ShareGroupAdmin(
        bootstrap_servers=settings.bootstrap_servers,
        client_id=settings.client_id,
        security=settings.security,
        timeout=settings.timeout,
        connect_timeout=min(CONNECT_TIMEOUT, settings.timeout),
    ) as admin:
        return await work(admin, settings)
