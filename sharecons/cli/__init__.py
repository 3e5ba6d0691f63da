"""The command line: one module per command.

Each command's module has `add_parser(subparsers)` and `run(options) -> int`, which
returns the exit code. Modules import what they need in `run`, so that `--help` is fast.

Read in this order: `client_options` (which cluster), `exit_codes` (errors and exit
codes), `output` (stdout and stderr), `tables` (rows as text or JSON), then a command.
`produce` and `consume` also use `format_properties` and `stop_signals`.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from sharecons.cli.examples import EXAMPLES
from sharecons.cli.output import run_command, write_error, write_raw
from sharecons.escaping import decode_utf8, escape, has_surrogates
from sharecons.similar_names import did_you_mean
from sharecons.version import VERSION

__all__ = ["main"]

COMMANDS: Final = (
    "broker",
    "completion",
    "consume",
    "create_topics",
    "dashboard",
    "dead_letters",
    "demo",
    "exporter",
    "groups",
    "migrate",
    "peek",
    "preflight",
    "produce",
    "run",
)
"""The modules and packages of the commands."""


class HelpFormatter(argparse.HelpFormatter):
    """Wraps the paragraphs of a text, but not those with examples, which are indented.

    An empty line ends a paragraph.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(
            part
            if part.startswith("  ") or "\n  " in part
            else fill(part, width, indent)
            for part in text.split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line and rejects abbreviated options.

    An abbreviation could change its meaning when an option is added.

    Args:
        prepare: adds the arguments of a command that needs slow modules for them.
    """

    def __init__(
        self,
        *args: Any,
        prepare: Callable[[argparse.ArgumentParser], None] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs = {"allow_abbrev": False, "formatter_class": HelpFormatter, **kwargs}
        super().__init__(*args, **kwargs)
        texts = (self.epilog, _examples(self.prog))
        self.epilog = "\n\n".join(filter(None, texts)) or None
        self._prepare = prepare
        self._given: list[str] = []

    def add_prepared(self) -> None:
        """Call `prepare`, the first time."""
        prepare, self._prepare = self._prepare, None
        if prepare is not None:
            prepare(self)

    def parse_known_args(self, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
        """Reject unknown options here: the parent would point to its own help."""
        self.add_prepared()
        self._given = list(args[0] if args and args[0] else ())
        found, unknown = super().parse_known_args(*args, **kwargs)
        if unknown:
            hint = self._similar_option(unknown)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, unknown

    def _similar_option(self, words: Iterable[str]) -> str:
        """Return a suggestion for the first unknown option that resembles another."""
        shown = [each for each in self._actions if each.help != argparse.SUPPRESS]
        names = [name for each in shown for name in each.option_strings]
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        hints = (did_you_mean(each, names) for each in options if each not in names)
        return next(filter(None, hints), "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(str(value), map(str, action.choices or ()))
            raise

    def error(self, message: str) -> NoReturn:
        if message.startswith("the following arguments are required"):
            message += self._similar_option(self._given)
        see = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{escape(f'{self.prog}: {message}{see} {self.prog} --help')}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse ignores errors when it writes the help.
        if file is sys.stdout:
            write_raw(message)
        else:
            super()._print_message(message, file)


def _examples(program: str) -> str:
    text = EXAMPLES.get(program, "")
    return f"examples:\n{text}" if text.startswith("  ") else text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    # kio imports hypothesis if it is installed, which takes 0.3 s.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    given = sys.argv[1:] if arguments is None else list(arguments)
    return run_command("sharecons", lambda: _run(given))


def _run(given: Sequence[str]) -> int:
    arguments = [decode_utf8(argument) for argument in given]
    for number, argument in enumerate(arguments, start=1):
        if has_surrogates(argument):
            write_error(
                f"sharecons: argument {number} is not valid UTF-8: {argument!r}"
            )
            return 2
    options = parser(is_complete=False).parse_args(arguments)
    options.arguments = arguments
    code: int = options.run(options)
    return code


def parser(*, is_complete: bool = True) -> argparse.ArgumentParser:
    """Return the parser of all commands.

    If it is not complete, it imports the modules of slow arguments once it parses them.
    """
    root = Parser(
        prog="sharecons",
        description="Inspect, manage and test Kafka share groups (KIP-932).",
    )
    root.add_argument("--version", action="version", version=f"sharecons {VERSION}")
    subparsers = root.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        import_module(f"sharecons.cli.{command}").add_parser(subparsers)
    if is_complete:
        for each in subparsers.choices.values():
            each.add_prepared()
    return root
