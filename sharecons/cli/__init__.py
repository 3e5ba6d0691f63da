"""The command line: one module for each command.

Each has `add_parser(subparsers)` and `run(options) -> int`, the exit code, and loads
what it needs when it runs: help is to come at once.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from sharecons.cli.output import guarded, write_error, write_raw
from sharecons.escaping import escape, has_surrogates
from sharecons.version import VERSION

__all__ = ["main"]

COMMANDS: Final = (
    "broker",
    "completion",
    "demo",
    "exporter",
    "groups",
    "migrate",
    "peek",
    "preflight",
)
"""Modules of this package, each with the command of its name."""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and takes no option by half its name.

    What is to be deleted should not depend on which options there are.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def parse_known_args(self, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
        """Refuse unknown options here: the parent would name its own help."""
        found, unknown = super().parse_known_args(*args, **kwargs)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{escape(f'{self.prog}: {message}; see {self.prog} --help')}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse ignores that help could not be written.
        if file is sys.stdout:
            write_raw(message)
        else:
            super()._print_message(message, file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    # kio loads hypothesis if it is there: 0.3 s that no command has a use for.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    given = sys.argv[1:] if arguments is None else list(arguments)
    return guarded("sharecons", lambda: _run(given))


def _run(arguments: Sequence[str]) -> int:
    for number, argument in enumerate(arguments, start=1):
        if has_surrogates(argument):
            write_error(
                f"sharecons: argument {number} is not valid UTF-8: {argument!r}"
            )
            return 2
    options = parser().parse_args(arguments)
    code: int = options.run(options)
    return code


def parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
    whole = Parser(
        prog="sharecons", description="Kafka share groups (KIP-932) from Python."
    )
    whole.add_argument("--version", action="version", version=f"sharecons {VERSION}")
    subparsers = whole.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        import_module(f"sharecons.cli.{command}").add_parser(subparsers)
    return whole
