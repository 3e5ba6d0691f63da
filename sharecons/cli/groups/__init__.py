"""`sharecons groups`: share groups listed, described, set up, reset and deleted.

Two ways to say the same: `sharecons groups members G`, and as kafka-share-groups.sh
has it, `sharecons groups --describe --members --group G`.
"""

import argparse
from typing import TYPE_CHECKING

from sharecons.cli.groups.arguments import PROGRAM, fill

if TYPE_CHECKING:
    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "groups",
        help="list, describe, set up, reset and delete share groups",
        description="List, describe, set up, reset and delete share groups. The "
        "options of kafka-share-groups.sh work here as they do there.",
    )
    fill(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do what the options say; gives the exit code."""
    from sharecons.cli.exit_codes import Exit, ask, complain
    from sharecons.cli.groups.actions import carry_out
    from sharecons.cli.groups.request import UsageError, read

    try:
        request = read(options)
    except UsageError as error:
        complain(PROGRAM, [error])
        return Exit.USAGE
    return ask(PROGRAM, options, lambda admin: carry_out(admin, request))
