"""The verdict of a run: everything produced, and what became of it.

Pure: it takes the journals and the times of the faults, and returns figures.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.chaos.journal import Entry

__all__ = ["Ledger", "Verdict"]

AROUND: Final = 1.0
"""Seconds before and after a fault in which a record is produced during it."""


@dataclass
class Verdict:
    """The figures of one client in one run; times are seconds.

    Attributes:
        produced: the number of records that brokers have confirmed.
        lost: the numbers that were not handled or rejected, and are no dead letters.
        duplicates: how many records were handled again, by the reason.
        unexplained: the numbers that were handled again without a reason.
        silence: the longest time in which no record was handled.
        partition_silence: the same, of one partition.
        delay: from the confirmation of a record to its handling: the longest one.
        recoveries: for each fault, the longest delay of the records produced during it.
    """

    produced: int = 0
    handled: int = 0
    rejected: int = 0
    dead: int = 0
    lost: list[int] = field(default_factory=list)
    duplicates: dict[str, int] = field(default_factory=dict)
    unexplained: list[int] = field(default_factory=list)
    silence: float = 0.0
    partition_silence: float = 0.0
    delay: float = 0.0
    recoveries: list[float] = field(default_factory=list)


class Ledger:
    """All that is known about the records of one client.

    Args:
        confirmed: when each number was confirmed by the broker.
        entries: the lines of all journals.
        dead: the numbers in the dead-letter topic.
        killed: when processes were killed, by the names of their journals.
        is_plain: whether a handler succeeds with a number at its first attempt: delays
            are measured with these.
        has_results: whether the client reports results of acknowledgements. Without
            them no reason of a duplicate is known.
    """

    def __init__(
        self,
        confirmed: Mapping[int, float],
        entries: Iterable[Entry],
        dead: Iterable[int] = (),
        killed: Mapping[str, float] | None = None,
        *,
        is_plain: Callable[[int], bool] = lambda _: True,
        has_results: bool = True,
    ) -> None:
        self._confirmed = confirmed
        self._entries = sorted(entries)
        self._dead = set(dead)
        self._killed = dict(killed or {})
        self._has_results = has_results
        self._is_plain = is_plain
        self._handled: defaultdict[int, list[Entry]] = defaultdict(list)
        self._results: defaultdict[tuple[str, str, int, int], list[Entry]] = (
            defaultdict(list)
        )
        self._rejected: set[int] = set()
        for entry in self._entries:
            if entry.kind == "handled":
                self._handled[entry.number].append(entry)
            elif entry.kind == "rejected":
                self._rejected.add(entry.number)
            elif entry.kind in ("accepted", "failed"):
                key = entry.process, entry.topic, entry.partition, entry.offset
                self._results[key].append(entry)

    def unsettled(self) -> set[int]:
        """Return the confirmed numbers of which nothing has become yet."""
        return (
            self._confirmed.keys() - self._handled.keys() - self._rejected - self._dead
        )

    def verdict(
        self, faults: Sequence[tuple[float, float]], begin: float, end: float
    ) -> Verdict:
        """Return the figures of the time from `begin` to `end`.

        Args:
            faults: the begin and the end of each fault.
        """
        verdict = Verdict(
            produced=len(self._confirmed),
            handled=len(self._handled),
            rejected=len(self._rejected),
            dead=len(self._dead),
            lost=sorted(self.unsettled()),
        )
        for number, calls in self._handled.items():
            for first, second in pairwise(calls):
                reason = self._reason(first, second)
                if reason:
                    verdict.duplicates[reason] = verdict.duplicates.get(reason, 0) + 1
                else:
                    verdict.unexplained.append(number)
        delays = self._delays()
        verdict.delay = max(delays.values(), default=0.0)
        verdict.recoveries = [
            self._longest(delays, first - AROUND, last + AROUND)
            for first, last in faults
        ]
        self._measure_silence(verdict, begin, end)
        return verdict

    def _reason(self, first: Entry, second: Entry) -> str:
        """Return why a record was handled again; empty if nothing explains it."""
        if not self._has_results:
            return "not reported"
        results = self._results[
            first.process, first.topic, first.partition, first.offset
        ]
        between = [r for r in results if first.seconds <= r.seconds <= second.seconds]
        if any(result.kind == "accepted" for result in between):
            return ""
        if between:
            return between[-1].error
        killed = self._killed.get(first.process)
        if killed is not None and first.seconds <= killed <= second.seconds:
            return "process killed"
        # Results have no delivery count. Of a broker that was paused and its successor,
        # the first delivery can fail after the second one was accepted.
        late = (r for r in results if r.seconds > second.seconds and r.kind == "failed")
        return next((f"late: {result.error}" for result in late), "")

    def _delays(self) -> dict[int, float]:
        """Return the seconds from each record's confirmation to its first handling."""
        return {
            number: max(0.0, self._handled[number][0].seconds - confirmed)
            for number, confirmed in self._confirmed.items()
            if number in self._handled and self._is_plain(number)
        }

    def _longest(self, delays: Mapping[int, float], first: float, last: float) -> float:
        return max(
            (
                delay
                for number, delay in delays.items()
                if first <= self._confirmed[number] <= last
            ),
            default=0.0,
        )

    def _measure_silence(self, verdict: Verdict, begin: float, end: float) -> None:
        by_partition: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        for entry in self._entries:
            if entry.kind == "handled" and begin <= entry.seconds <= end:
                by_partition[entry.topic, entry.partition].append(entry.seconds)
        everything = sorted(t for times in by_partition.values() for t in times)
        verdict.silence = _longest_gap(everything, begin, end)
        verdict.partition_silence = max(
            (_longest_gap(times, times[0], end) for times in by_partition.values()),
            default=end - begin,
        )


def _longest_gap(times: Sequence[float], begin: float, end: float) -> float:
    return max(second - first for first, second in pairwise((begin, *times, end)))
