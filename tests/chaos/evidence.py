"""Everything that is known about the records of one client: journals and logs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from tests.chaos.clients.plans import plan_of
from tests.chaos.cluster import Cluster
from tests.chaos.crashes import (
    Limits,
    archived_numbers,
    broken_rules,
    crash_notes,
)
from tests.chaos.faults import Faults
from tests.chaos.fleet import Fleet
from tests.chaos.group_state import read_group_state, state_notes
from tests.chaos.journal import Entry
from tests.chaos.key_order import out_of_order
from tests.chaos.ledger import Ledger, Position, Verdict
from tests.chaos.producing import PacedProducer
from tests.chaos.reading import (
    LogRecord,
    read_topic,
    short_reason,
)
from tests.chaos.redrives import Redrives

__all__ = ["Evidence"]

REASON = "sharecons.reason"
SHOWN = 5
"""Examples of one kind in a verdict."""


class Evidence:
    """The records of one client, read again for each method."""

    def __init__(
        self, cluster: Cluster, fleet: Fleet, producer: PacedProducer, faults: Faults
    ) -> None:
        self._servers = cluster.kafka.bootstrap_servers
        self._fleet = fleet
        self._options = fleet.options
        self._producer = producer
        self._faults = faults
        self._is_own = fleet.name == "sharecons"
        self._plan = partial(plan_of, plans=fleet.options.plans)

    def unsettled(self) -> set[int]:
        """Return the numbers of which nothing has become yet."""
        entries, letters = list(self._fleet.entries()), self._letters()
        unsettled = self._ledger(entries, letters).unsettled()
        if self._has_redrives:
            redrives = self._redrives(letters)
            unsettled |= redrives.not_redriven()
            unsettled |= redrives.without_end(_ends(entries))
        return unsettled

    def verdict(
        self, faults: Sequence[tuple[float, float]], begin: float, end: float
    ) -> Verdict:
        entries, letters = list(self._fleet.entries()), self._letters()
        tasks = self._records() if self._has_tasks else ()
        verdict = self._ledger(entries, letters, tasks).verdict(faults, begin, end)
        if verdict.lost:
            states = read_group_state(self._servers, self._options.group)
            positions = _positions(tasks or self._records())
            verdict.notes += state_notes(verdict.lost, positions, states)
        if self._is_own:
            self._add_letters(verdict, letters)
            self._add_crashes(verdict, entries, letters)
            if self._options.kind == "keys":
                moves = self._faults.moves
                verdict.broken += _some(out_of_order(entries, moves))
        if self._has_redrives:
            redrives = self._redrives(letters)
            verdict.notes += redrives.notes()
            again = {
                "redriven twice": redrives.twice,
                "never redriven": sorted(redrives.not_redriven()),
                "redriven without an end": sorted(redrives.without_end(_ends(entries))),
            }
            verdict.broken += [
                f"{len(found)} {what}: {found[:SHOWN]}"
                for what, found in again.items()
                if found
            ]
        return verdict

    @property
    def _has_redrives(self) -> bool:
        return self._options.plans == "redrive"

    def _letters(self) -> list[LogRecord]:
        topic = self._options.dead_letter
        return read_topic(self._servers, topic) if topic else []

    @property
    def _has_tasks(self) -> bool:
        return self._options.kind == "taskiq"

    def _records(self) -> Sequence[LogRecord]:
        topic = self._options.topic
        return read_topic(self._servers, topic, has_tasks=self._has_tasks)

    def _ledger(
        self,
        entries: Sequence[Entry],
        letters: Sequence[LogRecord],
        tasks: Sequence[LogRecord] = (),
    ) -> Ledger:
        """Return the ledger; `tasks` are needed for the reasons of their duplicates."""
        archived = set()
        if not self._options.dead_letter or self._has_tasks:
            archived = archived_numbers(entries, self._limits)
        return Ledger(
            self._producer.confirmed,
            entries,
            {letter.number for letter in letters},
            self._fleet.killed,
            crashed=self._fleet.crashed,
            deleted=self._faults.deletions(self._fleet),
            archived=archived,
            positions=_positions(tasks),
            copied=_repeated(tasks),
            is_plain=lambda number: self._plan(number) == "succeed",
            retry_topic=self._options.retry_topic,
            results="some" if self._has_tasks else "all" if self._is_own else "none",
        )

    @property
    def _limits(self) -> Limits:
        return Limits(self._faults.limits)

    def _redrives(self, letters: Sequence[LogRecord]) -> Redrives:
        deletion = max(self._faults.deletions(self._fleet), default=0.0)
        without = [n for n, at in self._producer.confirmed.items() if at <= deletion]
        return Redrives(self._records(), letters, without)

    def _add_letters(self, verdict: Verdict, letters: Sequence[LogRecord]) -> None:
        """Count the dead letters of records whose handler was to succeed."""
        reasons = Counter(
            short_reason(letter.headers.get(REASON, ""))
            for letter in letters
            if self._plan(letter.number) == "succeed"
        )
        verdict.notes += [
            f"{count} dead letters without a plan: {reason}"
            for reason, count in reasons.most_common()
        ]

    def _add_crashes(
        self, verdict: Verdict, entries: Sequence[Entry], letters: Sequence[LogRecord]
    ) -> None:
        has_letters = bool(self._options.dead_letter)
        verdict.notes += crash_notes(
            entries,
            {
                each.number: short_reason(each.headers.get(REASON, ""))
                for each in letters
            },
            archived_numbers(entries, self._limits),
        )
        if self._options.kind not in ("taskiq", "spark"):
            verdict.broken += _some(
                broken_rules(entries, self._limits, has_dead_letters=has_letters)
            )


def _positions(records: Iterable[LogRecord]) -> Mapping[int, list[Position]]:
    positions: defaultdict[int, list[Position]] = defaultdict(list)
    for each in records:
        positions[each.number].append((each.topic, each.partition, each.offset))
    return positions


def _repeated(tasks: Iterable[LogRecord]) -> set[int]:
    """Return the numbers of which two records have the same attempt."""
    attempts = Counter((each.number, each.attempt) for each in tasks)
    return {number for (number, _), count in attempts.items() if count > 1}


def _some(found: Sequence[str]) -> list[str]:
    left = len(found) - SHOWN
    return [*found[:SHOWN], *([f"and {left} more"] if left > 0 else [])]


def _ends(entries: Sequence[Entry]) -> Mapping[int, int]:
    """Return how often each number was processed or rejected."""
    return Counter(e.number for e in entries if e.kind in ("handled", "rejected"))
