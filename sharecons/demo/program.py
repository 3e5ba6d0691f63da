"""The command `sharecons demo`, from its options to its exit code."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Final, TextIO, TypeAlias

import anyio

from sharecons.demo.plan import Plan
from sharecons.demo.runner import Audience, Outcome, show
from sharecons.demo.text_view import TextView
from sharecons.errors import Error

__all__ = ["run"]

Write: TypeAlias = Callable[[str], None]

WRONG: Final = 1
UNABLE: Final = 2
INTERRUPTED: Final = 130
"""128 and the number of SIGINT, as shells have it."""


def run(
    options: argparse.Namespace, stdout: TextIO, write: Write, complain: Write
) -> int:
    """Play the demo; return 0 if it adds up, 1 if not, 2 if it could not be played.

    Args:
        stdout: for the picture, on a terminal.
        write: writes a line to stdout at once.
        complain: writes a line to stderr.
    """
    plan = Plan(
        jobs=options.jobs,
        consumers=options.consumers,
        seconds=options.seconds,
        seed=options.seed,
    )
    plain = options.plain or not stdout.isatty()
    audience = TextView(write) if plain else _screen(stdout)
    play = partial(show, plan, options.bootstrap_server, audience, complain)
    try:
        return _code(anyio.run(play, backend=options.backend))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Error, ExceptionGroup) as error:
        # In a group if it came while consumers ran; theirs are all of one cause.
        complain(str(_first(error)))
        return UNABLE


def _screen(stdout: TextIO) -> Audience:
    # Takes a while to be read, and lines do without.
    from rich.console import Console

    from sharecons.demo.screen import Screen

    return Screen(Console(file=stdout))


def _code(outcome: Outcome) -> int:
    if outcome.interrupted:
        return INTERRUPTED
    return WRONG if outcome.ledger.complaints() else 0


def _first(error: Exception) -> Error:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, Error):
        raise error  # a mistake of ours, to be seen whole
    return error
