"""The verdict of a run: everything produced, and what became of it.

Pure: it takes the journals and the times of the faults, and returns figures.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

from tests.chaos.journal import Entry

__all__ = ["Ledger", "Position", "Verdict"]

AROUND: Final = 1.0
"""Seconds before and after a fault in which a record is produced during it."""

LOCK_LOST: Final = "LockLost"
STARTING: Final = 0.2
"""Seconds that a thread takes to start; the lock can be lost meanwhile."""

SILENCE: Final = 1.0
"""Seconds after which a client that handles nothing is silent."""

Position = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass
class Verdict:
    """The figures of one client in one run; times are seconds.

    Attributes:
        produced: the number of records that brokers have confirmed.
        lost: the numbers that were not handled or rejected, and are no dead letters.
        written_off: how many were deleted with their topic before they were handled.
        duplicates: how many records were handled again, by the reason.
        unexplained: the numbers that were handled again without a reason.
        silence: the longest time in which no record was handled.
        partition_silence: the same, of one partition.
        silences: the begin and the end of each silence of more than a second.
        delay: from the confirmation of a record to its handling: the longest one.
        recoveries: for each fault, the longest delay of the records produced during it.
        broken: other promises that were not kept.
        notes: further figures.
    """

    produced: int = 0
    handled: int = 0
    rejected: int = 0
    dead: int = 0
    lost: list[int] = field(default_factory=list)
    written_off: int = 0
    duplicates: dict[str, int] = field(default_factory=dict)
    unexplained: list[int] = field(default_factory=list)
    silence: float = 0.0
    partition_silence: float = 0.0
    silences: list[tuple[float, float]] = field(default_factory=list)
    delay: float = 0.0
    recoveries: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Ledger:
    """All that is known about the records of one client.

    Args:
        confirmed: when each number was confirmed by the broker.
        entries: the lines of all journals.
        dead: the numbers in the dead-letter topic.
        killed: when processes were killed, by the names of their journals.
        crashed: when processes ended by themselves, in the same way.
        deleted: when the topic was deleted. Its records before are written off.
        archived: the numbers that brokers have archived, as documented.
        positions: where numbers are in the log, of entries that do not know it.
        copied: of these, the numbers of which an attempt is in the log twice: a process
            has died between the copy for the next attempt and its acknowledgement.
        is_plain: whether a handler succeeds with a number at its first attempt: delays
            are measured with these.
        retry_topic: has few records: the silence of its partitions says nothing.
        results: how many results of acknowledgements the client reports. Without them
            no reason of a duplicate is known. With "some" it reports none of a request
            that was never sent.
    """

    def __init__(
        self,
        confirmed: Mapping[int, float],
        entries: Iterable[Entry],
        dead: Iterable[int] = (),
        killed: Mapping[str, float] | None = None,
        *,
        crashed: Mapping[str, float] | None = None,
        deleted: Sequence[float] = (),
        archived: Collection[int] = (),
        positions: Mapping[int, Sequence[Position]] | None = None,
        copied: Collection[int] = (),
        is_plain: Callable[[int], bool] = lambda _: True,
        retry_topic: str = "",
        results: Literal["all", "some", "none"] = "all",
    ) -> None:
        self._confirmed = confirmed
        self._entries = sorted(entries)
        self._dead = set(dead)
        self._ended = {
            "process killed": killed or {},
            "process crashed": crashed or {},
        }
        deletion = max(deleted, default=0.0)
        self._old = {n for n, seconds in confirmed.items() if seconds <= deletion}
        self._archived = set(archived)
        self._positions = positions or {}
        self._copied = copied
        self._reported = results
        self._is_plain = is_plain
        self._retry_topic = retry_topic
        self._handled: defaultdict[int, list[Entry]] = defaultdict(list)
        self._begun: defaultdict[int, list[Entry]] = defaultdict(list)
        self._results: defaultdict[tuple[str, Position], list[Entry]] = defaultdict(
            list
        )
        self._rejected: set[int] = set()
        for entry in self._entries:
            if entry.kind == "handled":
                self._handled[entry.number].append(entry)
            elif entry.kind == "begun":
                self._begun[entry.number].append(entry)
            elif entry.kind == "rejected":
                self._rejected.add(entry.number)
            elif entry.kind in ("accepted", "failed"):
                self._results[entry.process, _position(entry)].append(entry)

    def unsettled(self) -> set[int]:
        """Return the confirmed numbers of which nothing has become yet."""
        return self._open() - self._old

    def _open(self) -> set[int]:
        ended = self._rejected | self._dead | self._archived
        return self._confirmed.keys() - self._handled.keys() - ended

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
            written_off=len(self._open() & self._old),
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
        if self._reported == "none":
            return "not reported"
        if first.error:  # the batch of a Spark query
            return "batch replayed" if first.error == second.error else ""
        results = [
            result
            for position in self._positions_of(first)
            for result in self._results[first.process, position]
        ]
        began = self._call_of(first)
        between = [
            result
            for result in results
            if began - STARTING * (result.error == LOCK_LOST)
            <= result.seconds
            <= second.seconds
        ]
        if any(result.kind == "accepted" for result in between):
            return self._copied_twice(first, second)
        if between:
            return between[-1].error
        for reason, processes in self._ended.items():
            ended = processes.get(first.process)
            if ended is not None and first.seconds <= ended <= second.seconds:
                return reason
        # Results have no delivery count. Of a broker that was paused and its successor,
        # the first delivery can fail after the second one was accepted.
        late = (r for r in results if r.seconds > second.seconds and r.kind == "failed")
        known = [f"late: {result.error}" for result in late]
        known += [self._copied_twice(first, second)]
        known += ["not confirmed"] * (self._reported == "some")
        return next(filter(None, known), "")

    def _call_of(self, handled: Entry) -> float:
        """Return when this call of the handler began: it can lose the lock.

        A leader that moves begins to count deliveries again, so the count does not
        tell two deliveries apart.
        """
        calls = (
            begun.seconds
            for begun in self._begun[handled.number]
            if _delivery(begun) == _delivery(handled)
            and begun.seconds <= handled.seconds
        )
        return max(calls, default=handled.seconds)

    def _copied_twice(self, first: Entry, second: Entry) -> str:
        """Return "copied twice" for two copies of a record that was delivered twice.

        A process that dies or loses the lock after it has moved a record to a retry
        topic, and before the record is accepted, leaves both.
        """
        if first.number in self._copied:
            return "copied twice"
        begun = self._begun[first.number]
        is_copied = _position(first) != _position(second)
        deliveries = {_delivery(each) for each in begun}
        is_repeated = len(deliveries) > len({_position(each) for each in begun})
        # A leader that moves can count both deliveries as the first one.
        has_failed = any(
            result.kind == "failed" and result.seconds <= second.seconds
            for each in begun
            for result in self._results[each.process, _position(each)]
        )
        return "copied twice" if is_copied and (is_repeated or has_failed) else ""

    def _positions_of(self, entry: Entry) -> Sequence[Position]:
        if entry.topic == "-":
            return self._positions.get(entry.number, ())
        return (_position(entry),)

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
            if entry.kind != "handled" or entry.topic == self._retry_topic:
                continue
            if begin <= entry.seconds <= end:
                by_partition[entry.topic, entry.partition].append(entry.seconds)
        everything = sorted(t for times in by_partition.values() for t in times)
        verdict.silence = _longest_gap(everything, begin, end)
        verdict.silences = [
            (first, second)
            for first, second in pairwise((begin, *everything, end))
            if second - first > SILENCE
        ]
        verdict.partition_silence = max(
            (_longest_gap(times, times[0], end) for times in by_partition.values()),
            default=end - begin,
        )


def _longest_gap(times: Sequence[float], begin: float, end: float) -> float:
    return max(second - first for first, second in pairwise((begin, *times, end)))


def _position(entry: Entry) -> Position:
    return entry.topic, entry.partition, entry.offset


def _delivery(entry: Entry) -> tuple[Position, str, int]:
    return _position(entry), entry.process, entry.count
