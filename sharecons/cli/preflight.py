"""`sharecons preflight`: checks that a cluster is ready for share groups."""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, copy_topic_options, output, tables
from sharecons.cli.option_values import Subparsers

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import ExitCode
    from sharecons.inspection.diagnosis.checks import Check

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons preflight"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "preflight",
        help="check whether a cluster is ready for share groups",
        description="Check whether a cluster is ready for share groups. Each check "
        "writes one line: ok, warn or fail, what it found, and advice. Nothing is "
        "changed. The exit code is 1 if a check fails.",
    )
    for name in ("topic", "group"):
        parser.add_argument(
            f"--{name}",
            dest=f"{name}s",
            action="append",
            default=[],
            metavar=name.upper(),
            help=f"also check this {name}; can be repeated",
        )
    copy_topic_options.add_options(parser)
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the checks and write the results; return the exit code."""
    from sharecons.cli.exit_codes import run_with_admin

    return run_with_admin(PROGRAM, options, lambda admin: _check(admin, options))


async def _check(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "ExitCode":
    from sharecons.cli.exit_codes import ExitCode
    from sharecons.inspection.diagnosis.checks import Verdict
    from sharecons.inspection.preflight import check_cluster

    checks = await check_cluster(
        admin,
        topics=options.topics,
        groups=options.groups,
        retry_topics=dict(options.retry_topics),
        dead_letter=options.dead_letter,
    )
    if options.json:
        tables.write([_row(each) for each in checks], (), as_json=True)
    else:
        _write(checks)
    failed = any(each.verdict is Verdict.FAIL for each in checks)
    return ExitCode.FAILED if failed else ExitCode.SUCCESS


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
