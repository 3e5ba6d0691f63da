"""`sharecons groups`: list, describe, configure, reset and delete share groups.

Each action has two forms: `sharecons groups members G`, and with the options of
kafka-share-groups.sh, `sharecons groups --describe --members --group G`.

Read in this order: `arguments` (options), `request` (their meaning), `actions` (which
function runs), then the action, for example `describe`. `output` writes its result.
"""

import argparse

from sharecons.cli.groups.arguments import PROGRAM, add_arguments
from sharecons.cli.option_values import Subparsers

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "groups",
        help="list, describe, configure, reset and delete share groups",
        description="List, describe, configure, reset and delete share groups. Use a "
        "command, such as 'sharecons groups describe GROUP', or the options of "
        "kafka-share-groups.sh, which have the same names and meanings.",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the action that the options name; return the exit code."""
    from sharecons.cli.exit_codes import ExitCode, run_with_admin, write_errors
    from sharecons.cli.groups.actions import run_action
    from sharecons.cli.groups.request import UsageError, parse_request

    try:
        request = parse_request(options)
    except UsageError as error:
        write_errors(PROGRAM, [error])
        return ExitCode.USAGE
    return run_with_admin(PROGRAM, options, lambda admin: run_action(admin, request))
