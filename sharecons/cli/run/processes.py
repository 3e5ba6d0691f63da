"""Several processes of one command, as members of one group."""

import argparse
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sharecons.cli.exit_codes import ExitCode, write_errors
from sharecons.cli.run.arguments import PROGRAM
from sharecons.cli.run.logs import configure_logs
from sharecons.cli.run.supervisor import Changes, Supervisor
from sharecons.errors import ConfigurationError, Error
from sharecons.log import get_logger

__all__ = ["member_name", "supervise"]


def member_name(options: argparse.Namespace) -> str:
    """Return the name from which processes derive their member ids.

    The process id keeps two commands on one host apart: two members with one id would
    remove each other from the group.
    """
    given: str | None = options.member_id
    return given or f"{socket.gethostname()}-{os.getpid()}"


def supervise(options: argparse.Namespace) -> int:
    """Run the processes until a signal arrives; return the exit code."""
    import anyio

    configure_logs(None, options.log_level)
    log = _logger(options)
    supervisor = Supervisor(
        _command(options, member_name(options)),
        options.processes,
        grace=options.grace,
        report=log.info,
        warn=log.warning,
        fail=log.error,
        changes=_changes() if options.reload else None,
    )
    try:
        run = partial(_run, options.health_host, options.health_port, supervisor, log)
        return anyio.run(run)
    except ConfigurationError as error:
        write_errors(PROGRAM, [error])
        return ExitCode.USAGE
    except Error as error:
        write_errors(PROGRAM, [error])
        return ExitCode.FAILED


def _logger(options: argparse.Namespace) -> Any:
    """Return the logger. The supervisor does not know the group of a worker object."""
    group = {"group": options.group} if options.group else {}
    return get_logger(PROGRAM.replace(" ", "."), **group)


async def _run(host: str, port: int | None, supervisor: Supervisor, log: Any) -> int:
    """Run the processes, and serve one health port for all of them."""
    if port is None:
        return await supervisor.run()
    import anyio

    from sharecons.cli.run.health import health_port

    reports = supervisor.reports
    code = int(ExitCode.FAILED)
    failure: Error | None = None
    async with health_port(
        host,
        port,
        live=reports.live,
        ready=reports.ready,
        families=reports.families,
        log=lambda url: log.info("health port", url=url),
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reports.request_repeatedly)
            try:
                code = await supervisor.run()
            except Error as error:
                failure = error  # raised below: the task group would wrap it
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return code


def _command(options: argparse.Namespace, name: str) -> Callable[[int], list[str]]:
    def command(index: int) -> list[str]:
        return [
            *(sys.executable, "-m", "sharecons", *options.arguments),
            *("--process", str(index), f"--member-id={name}"),
        ]

    return command


def _changes() -> Changes:
    from sharecons.cli.run.reload import watch_directory

    return partial(watch_directory, Path.cwd())
