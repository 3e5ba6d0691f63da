"""`sharecons completion`: completion scripts for bash, zsh and fish."""

import argparse
from typing import Final

from sharecons.cli import output
from sharecons.cli.extras import is_missing
from sharecons.cli.option_values import Subparsers

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons completion"
SHELLS: Final = ("bash", "zsh", "fish")

INSTALL_HELP: Final = """\
Install the script where your shell looks for it:
  bash   sharecons completion bash > /etc/bash_completion.d/sharecons
  zsh    sharecons completion zsh > "${fpath[1]}/_sharecons"
  fish   sharecons completion fish > ~/.config/fish/completions/sharecons.fish
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "completion",
        help="write a shell completion script",
        description="Write a script with which your shell completes commands and "
        "options to stdout.",
        epilog=INSTALL_HELP,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete in")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the script for a shell; return the exit code."""
    # Imported late: the package imports all commands, including this one.
    from sharecons.cli import parser
    from sharecons.cli.exit_codes import ExitCode

    if is_missing(PROGRAM, "cli", "shtab"):
        return ExitCode.USAGE
    import shtab

    output.write_raw(f"{shtab.complete(parser(), options.shell)}\n")
    return 0
