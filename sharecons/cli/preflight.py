"""`sharecons preflight`: is this cluster ready for share groups?"""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, output, tables

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import Exit
    from sharecons.protocol.diagnosis.preflight import Check

    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons preflight"


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "preflight",
        help="look whether a cluster is ready for share groups",
        description="Look whether a cluster is ready for share groups: one line for "
        "each thing, ok, warn or fail, with what to do. Nothing is changed. The exit "
        "code is 1 if something failed.",
    )
    for name, what in (("topic", "to be consumed"), ("group", "to be joined")):
        parser.add_argument(
            f"--{name}",
            dest=f"{name}s",
            action="append",
            default=[],
            metavar=name.upper(),
            help=f"a {name} {what}; give it again for more",
        )
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check, and show; gives the exit code."""
    from sharecons.cli.exit_codes import ask

    return ask(PROGRAM, options, lambda admin: _check(admin, options))


async def _check(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "Exit":
    from sharecons.cli.exit_codes import Exit
    from sharecons.inspection.preflight import check_cluster
    from sharecons.protocol.diagnosis.preflight import Verdict

    checks = await check_cluster(admin, topics=options.topics, groups=options.groups)
    if options.json:
        tables.write([_row(each) for each in checks], (), as_json=True)
    else:
        _write(checks)
    failed = any(each.verdict is Verdict.FAIL for each in checks)
    return Exit.REFUSED if failed else Exit.DONE


def _row(check: "Check") -> tables.Row:
    return {
        "check": check.name,
        "verdict": check.verdict.value,
        "found": check.found,
        "advice": check.advice or None,
    }


def _write(checks: "Iterable[Check]") -> None:
    for each in checks:
        advice = f" -> {each.advice}" if each.advice else ""
        output.write_line(f"{each.verdict.value:<4}  {each.name}: {each.found}{advice}")
