"""`sharecons completion`: what a shell needs to complete commands and options."""

import argparse
from typing import TYPE_CHECKING, Final

from sharecons.cli import output

if TYPE_CHECKING:
    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser", "run"]

SHELLS: Final = ("bash", "zsh", "fish")

HOW: Final = """\
put it where the shell looks for it:
  bash   sharecons completion bash > /etc/bash_completion.d/sharecons
  zsh    sharecons completion zsh > a directory of $fpath, as _sharecons
  fish   sharecons completion fish > ~/.config/fish/completions/sharecons.fish
"""


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "completion",
        help="write what a shell needs to complete commands and options",
        description="Write what a shell needs to complete commands and options.",
        epilog=HOW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the shell's script; gives the exit code."""
    import shtab

    # Where all commands come together, this one among them.
    from sharecons.cli import parser

    output.write_raw(f"{shtab.complete(parser(), options.shell)}\n")
    return 0
