"""How a command ends: its exit code, and the lines that say why.

    def run(options):
        return ask("sharecons peek", options, lambda admin: peek(admin, options))

    async def peek(admin, options) -> Exit: ...

Whatever goes wrong becomes one line on stderr for each thing that went wrong, and an
exit code that a script can act on; what else was asked is still done and shown.
"""

import enum
import logging
import signal
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sharecons.cli.output import write_error
from sharecons.errors import (
    AuthenticationError,
    AuthorizationError,
    ConfigurationError,
    ConnectionFailedError,
    Error,
    UnsupportedVersionError,
)

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.config.settings import ClientSettings

__all__ = ["Exit", "ask", "ask_with", "complain", "exit_of", "run"]

CONNECT_TIMEOUT: Final = 3.0
"""Seconds in which a command reaches a first broker. A wrong address takes as long."""


class Exit(enum.IntEnum):
    """Exit codes of all commands; docs/command-line.md explains them to users."""

    DONE = 0
    """All that was asked was done."""
    REFUSED = 1
    """Something was refused, or is not there; the rest was done.

    Also: standard output could not be written."""
    USAGE = 2
    """Options, environment or properties make no sense; nothing was asked."""
    UNREACHABLE = 3
    """No broker was reached, or it did not answer in time."""
    FORBIDDEN = 4
    """The brokers do not know who asks, or he has no right to it."""
    TOO_OLD = 5
    """The brokers do not know what was asked."""
    INTERRUPTED = 128 + signal.SIGINT
    """Ctrl-C, as shells have it."""
    PIPE_CLOSED = 128 + 13
    """Whoever read the output went away, as `head` does; SIGPIPE, as shells have it."""


_EXITS = (
    (ConfigurationError, Exit.USAGE),
    (ConnectionFailedError, Exit.UNREACHABLE),
    (AuthenticationError, Exit.FORBIDDEN),
    (AuthorizationError, Exit.FORBIDDEN),
    (UnsupportedVersionError, Exit.TOO_OLD),
)


def exit_of(*errors: BaseException) -> Exit:
    """Give the exit code for what went wrong; of several errors, the highest one."""
    return max((_exit_of(error) for error in errors), default=Exit.DONE)


def _exit_of(error: BaseException) -> Exit:
    return next(
        (code for kind, code in _EXITS if isinstance(error, kind)), Exit.REFUSED
    )


def complain(program: str, errors: Iterable[BaseException | str]) -> None:
    """Write one line on stderr for each error; equal ones once."""
    for line in dict.fromkeys(str(error) for error in errors):
        write_error(f"{program}: {line}")


def run(program: str, work: Callable[[], Awaitable[Exit]]) -> Exit:
    """Run a command's async part to its end; gives the exit code."""
    import anyio

    try:
        return anyio.run(work)
    except Error as error:
        complain(program, [error])
        return exit_of(error)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def ask(
    program: str,
    options: Namespace,
    work: Callable[["ShareGroupAdmin"], Awaitable[Exit]],
) -> Exit:
    """Run what asks a cluster, the one that `connecting.add_options` names."""
    return ask_with(program, options, lambda admin, _: work(admin))


def ask_with(
    program: str,
    options: Namespace,
    work: Callable[["ShareGroupAdmin", "ClientSettings"], Awaitable[Exit]],
) -> Exit:
    """As `ask`, for work that also needs to know the settings."""
    from sharecons.cli import client_options

    try:
        settings = client_options.load(options)
    except Error as error:
        complain(program, [error])
        return Exit.USAGE
    with _without_connect_warnings():
        return run(program, lambda: _asked(settings, work))


@contextmanager
def _without_connect_warnings() -> Iterator[None]:
    """Leave it to the error that ends the command, in its one line."""
    logger = logging.getLogger("sharecons.net.connect_attempts")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


async def _asked(
    settings: "ClientSettings",
    work: Callable[["ShareGroupAdmin", "ClientSettings"], Awaitable[Exit]],
) -> Exit:
    from sharecons.admin import ShareGroupAdmin

    async with ShareGroupAdmin(
        settings.bootstrap_servers,
        client_id=settings.client_id,
        security=settings.security,
        timeout=settings.timeout,
        connect_timeout=min(CONNECT_TIMEOUT, settings.timeout),
    ) as admin:
        return await work(admin, settings)
