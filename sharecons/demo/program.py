"""The options, errors and exit codes of `sharecons demo`."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Final, TextIO, TypeAlias

import anyio

from sharecons.demo.plan import Plan
from sharecons.demo.runner import DemoResult, View, run_demo
from sharecons.demo.text_view import TextView
from sharecons.errors import Error
from sharecons.log_levels import without_warnings

__all__ = ["run"]

Write: TypeAlias = Callable[[str], None]

MISMATCH: Final = 1
INTERRUPTED: Final = 130
"""128 plus the number of SIGINT, as shells use it."""


def run(
    options: argparse.Namespace,
    *,
    stdout: TextIO,
    write: Write,
    write_error: Write,
    exit_code_of: Callable[[Error], int],
) -> int:
    """Run the demo; return 0 if its check passes, 1 if not, or the code of an error.

    Args:
        stdout: the file for the live view on a terminal.
        write: writes a line to stdout and flushes it.
        write_error: writes a line to stderr.
        exit_code_of: returns the exit code for an error.
    """
    plan = Plan(
        jobs=options.jobs,
        consumers=options.consumers,
        seconds=options.seconds,
        seed=options.seed,
    )
    plain = options.plain or not stdout.isatty()
    view = TextView(write) if plain else _screen_view(stdout)
    run_plan = partial(run_demo, plan, options.bootstrap_server, view, write_error)
    try:
        # The view shows what failed, who was killed and which jobs were redelivered.
        with (
            without_warnings("sharecons.member.member_tasks"),
            without_warnings("sharecons.worker"),
        ):
            return _exit_code(anyio.run(run_plan, backend=options.backend))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Error, ExceptionGroup) as error:
        # A group holds errors of running consumers, which have the same cause.
        first = _first_error(error)
        write_error(str(first))
        return exit_code_of(first)


def _screen_view(stdout: TextIO) -> View:
    # Imported late: rich is slow to import, and the text view does not need it.
    from rich.console import Console

    from sharecons.demo.screen import Screen

    return Screen(Console(file=stdout))


def _exit_code(outcome: DemoResult) -> int:
    if outcome.interrupted:
        return INTERRUPTED
    return MISMATCH if outcome.tracker.discrepancies() else 0


def _first_error(error: Exception) -> Error:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, Error):
        raise error  # a bug: show the whole traceback
    return error
