"""`sharecons dead-letters`: list, show, redrive and delete dead letters.

Read in this order: `arguments` (options), `listing` (`list` and `show`), `redrive`,
`delete`, and `letter_text` (dead letters as text and JSON).
"""

import argparse

from sharecons.cli.dead_letters.arguments import add_arguments
from sharecons.cli.option_values import Subparsers

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "dead-letters",
        help="list, show, redrive and delete dead letters",
        description="List and show the records that a worker or a broker has written "
        "to a dead-letter topic, write them back to the topics they came from, and "
        "delete them.",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the action that the options name; return the exit code."""
    from sharecons.cli.dead_letters import delete, listing, redrive
    from sharecons.cli.exit_codes import run_with_admin

    actions = {
        "list": listing.list_letters,
        "show": listing.show_letter,
        "redrive": redrive.redrive,
        "delete": delete.delete,
    }
    program = f"sharecons dead-letters {options.action}"
    work = actions[options.action]
    return run_with_admin(
        program, options, lambda admin: work(admin, options), topic=options.topic
    )
