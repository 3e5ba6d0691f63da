"""The command `sharecons demo`, from its options to its exit code."""

import argparse
import sys
from functools import partial
from typing import Final

import anyio

from sharecons.demo.lines import Lines
from sharecons.demo.plan import Plan
from sharecons.demo.show import Audience, Outcome, show
from sharecons.errors import Error

__all__ = ["run"]

WRONG: Final = 1
UNABLE: Final = 2
INTERRUPTED: Final = 130
"""128 and the number of SIGINT, as shells have it."""


def run(options: argparse.Namespace) -> int:
    """Play the demo; 0 if it adds up, 1 if not, 2 if it could not be played."""
    plan = Plan(
        jobs=options.jobs,
        consumers=options.consumers,
        seconds=options.seconds,
        seed=options.seed,
    )
    audience = _audience(options.plain)
    play = partial(show, plan, options.bootstrap_server, audience, _complain)
    try:
        return _code(anyio.run(play, backend=options.backend))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Error, ExceptionGroup) as error:
        # In a group if it came while consumers ran; theirs are all of one cause.
        return _unable(_first(error))


def _audience(plain: bool) -> Audience:
    if plain or not sys.stdout.isatty():
        return Lines(partial(print, flush=True))
    # Takes a while to be read, and lines do without.
    from rich.console import Console

    from sharecons.demo.screen import Screen

    return Screen(Console())


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


def _unable(error: Error) -> int:
    _complain(str(error))
    return UNABLE


def _complain(what: str) -> None:
    sys.stderr.write(f"sharecons demo: {what}\n")
