"""`sharecons dead-letters redrive`."""

import argparse
import os
import sys

import anyio

from sharecons.admin import ShareGroupAdmin
from sharecons.cli import output, tables
from sharecons.cli.exit_codes import ExitCode, write_errors
from sharecons.config.not_given import NOT_GIVEN
from sharecons.dead_letters import (
    DeadLetterRecord,
    DeadLetters,
    RedriveSummary,
    parse_filter,
)
from sharecons.dead_letters.plan import Decision, SkipReason, Write
from sharecons.dead_letters.progress_store import RedriveConflictError
from sharecons.errors import Error
from sharecons.instrumentation import Instrumentation, choose_instrumentation

__all__ = ["redrive"]

PROGRAM = "sharecons dead-letters redrive"


async def redrive(admin: ShareGroupAdmin, options: argparse.Namespace) -> ExitCode:
    letters = DeadLetters.from_admin(
        admin, options.topic, instrumentation=_instrumentation()
    )
    if options.dry_run:
        return await _dry_run(letters, options)
    progress = _Progress(is_shown=sys.stdout.isatty() and not options.json)
    try:
        summary = await letters.redrive(
            to=options.to,
            name=options.name,
            filter=parse_filter(*options.filters),
            only=options.only,
            again=options.again,
            max_redrives=options.max_redrives,
            limit=options.limit,
            rate=options.rate,
            on_progress=progress.show,
        )
    except (Error, anyio.get_cancelled_exc_class()) as error:
        progress.end()
        if progress.last is not None and not isinstance(error, RedriveConflictError):
            how = "without --again to continue" if options.again else "to continue"
            text = f"interrupted: {_text(progress.last)}; run it again {how}"
            write_errors(PROGRAM, [text])
        raise
    progress.end()
    _write_summary(summary, options)
    write_errors(PROGRAM, summary.errors)
    return ExitCode.FAILED if summary.errors else ExitCode.SUCCESS


def _instrumentation() -> Instrumentation | None:
    """Return what makes spans: the process's own, or OpenTelemetry if it is configured.

    Importing OpenTelemetry takes longer than most commands, so this looks first whether
    it can be configured.
    """
    chosen = choose_instrumentation(NOT_GIVEN)
    can_be_configured = (
        "opentelemetry.trace" in sys.modules
        or "OTEL_PYTHON_TRACER_PROVIDER" in os.environ
    )
    if chosen is not None or not can_be_configured:
        return chosen
    try:
        from sharecons.otel import OpenTelemetry, is_configured
    except ImportError:  # the variable is set, and the package is not installed
        return None
    return OpenTelemetry() if is_configured() else None


async def _dry_run(letters: DeadLetters, options: argparse.Namespace) -> ExitCode:
    rows: list[tables.Row] = []

    def on_decision(letter: DeadLetterRecord, decision: Decision) -> None:
        if not isinstance(decision, Write) and decision.reason is SkipReason.FILTERED:
            return
        row = _row(letter, decision)
        if options.json:
            rows.append(row)
        else:
            output.write_line(f"{row['position']}  {row['action']}")

    summary = await letters.plan_redrive(
        on_decision,
        to=options.to,
        name=options.name,
        filter=parse_filter(*options.filters),
        only=options.only,
        again=options.again,
        max_redrives=options.max_redrives,
        limit=options.limit,
    )
    if options.json:
        tables.write(rows, (), as_json=True)
    else:
        output.write_line(f"dry run: {_text(summary)}")
    write_errors(PROGRAM, summary.errors)
    return ExitCode.FAILED if summary.errors else ExitCode.SUCCESS


def _row(letter: DeadLetterRecord, decision: Decision) -> tables.Row:
    target = decision.target if isinstance(decision, Write) else None
    action = (
        f"skip: {decision.reason.value}"
        if not isinstance(decision, Write)
        else f"write to {decision.target.topic}-{decision.target.partition}"
    )
    return {
        "position": letter.position,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "action": action,
        "target_topic": None if target is None else target.topic,
        "target_partition": None if target is None else target.partition,
    }


def _write_summary(summary: RedriveSummary, options: argparse.Namespace) -> None:
    if options.json:
        row: tables.Row = {
            "name": summary.name,
            "redriven": summary.redriven,
            "already_written": summary.already_written,
            "filtered": summary.filtered,
            "skipped": dict(summary.skipped),
            "remaining": summary.remaining,
        }
        tables.write([row], (), as_json=True)
    else:
        output.write_line(_text(summary))


def _text(summary: RedriveSummary) -> str:
    parts = [f"{summary.redriven} redriven"]
    if summary.already_written:
        parts.append(f"{summary.already_written} written by an interrupted run")
    if summary.filtered:
        parts.append(f"{summary.filtered} do not pass the filters")
    parts += [f"{count} skipped: {why}" for why, count in summary.skipped.items()]
    if summary.remaining:
        parts.append(f"{summary.remaining} offsets left")
    return "; ".join(parts)


class _Progress:
    """A line on the terminal that is overwritten."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._width = 0
        self.last: RedriveSummary | None = None

    def show(self, summary: RedriveSummary) -> None:
        self.last = summary
        if self._is_shown:
            text = f"{summary.redriven} redriven, {summary.remaining} offsets left"
            output.write_raw(f"\r{text:<{self._width}}")
            output.flush()
            self._width = len(text)

    def end(self) -> None:
        if self._width:
            output.write_raw(f"\r{'':<{self._width}}\r")
            self._width = 0
