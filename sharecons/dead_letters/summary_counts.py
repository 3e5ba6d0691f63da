"""The counts of a redrive that is running."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from sharecons._record import TopicPartition
from sharecons.dead_letters.batch_writer import BatchResult
from sharecons.dead_letters.models import DeadLetterRecord, RedriveSummary
from sharecons.dead_letters.plan import (
    BatchPlan,
    Decision,
    SkipReason,
    Write,
    error_of,
)

__all__ = ["SummaryCounts"]

MAX_ERRORS: Final = 1_000
"""Errors of single dead letters that a summary has."""


class SummaryCounts:
    """Counts what a redrive has done.

    Attributes:
        redriven: how many dead letters this run has written.
        already_written: how many an interrupted run had written.
        remaining: how many offsets each partition has that were not looked at.
    """

    def __init__(self) -> None:
        self.redriven = self.already_written = 0
        self.remaining: dict[TopicPartition, int] = {}
        self._skipped: Counter[SkipReason] = Counter()
        self._errors: list[str] = []

    def summary(self, name: str) -> RedriveSummary:
        """Return the counts so far."""
        return RedriveSummary(
            name=name,
            redriven=self.redriven,
            already_written=self.already_written,
            filtered=self._skipped[SkipReason.FILTERED],
            skipped={
                reason.value: count
                for reason, count in self._skipped.items()
                if count and reason is not SkipReason.FILTERED
            },
            errors=tuple(self._errors),
            remaining=sum(self.remaining.values()),
        )

    def add_result(self, result: BatchResult) -> None:
        """Count the records of a batch that were written or rejected."""
        self.redriven += result.written
        self._skipped[SkipReason.REJECTED] += len(result.rejected)
        self.add_errors(
            f"{write.letter.position}: {error}" for write, error in result.rejected
        )

    def add_skipped(self, batch: BatchPlan) -> None:
        """Count the dead letters that a batch has skipped."""
        self._skipped += batch.skipped
        self.add_errors(batch.errors)

    def add_decision(self, letter: DeadLetterRecord, decision: Decision) -> None:
        """Count a dead letter of a dry run."""
        if isinstance(decision, Write):
            self.redriven += 1
        else:
            self._skipped[decision.reason] += 1
            self.add_errors([error_of(letter, decision)])

    def add_errors(self, errors: Iterable[str]) -> None:
        """Add messages about single dead letters; empty ones are dropped."""
        self._errors += (each for each in errors if each)
        del self._errors[MAX_ERRORS:]
