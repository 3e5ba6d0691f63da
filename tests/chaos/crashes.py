"""The verdict about records that end their process: their calls, and what they became.

docs/worker-dead-letters.md has the rules: a record that was delivered without an
outcome runs alone on the two deliveries before its last one, and is a dead letter on
the last one.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from tests.chaos.journal import Entry

__all__ = ["LIMIT", "Limits", "archived_numbers", "broken_rules", "crash_notes"]

LIMIT: Final = 5
"""Deliveries that a group allows by default."""

KNOWN_AFTER: Final = 75.0
"""Seconds after which every worker knows a change: it reads the limit once a minute."""

SUSPECT: Final = 2
"""How many deliveries before the last one a record runs alone, and never on its first.
"""


class Limits:
    """The limits of deliveries that workers have known.

    Args:
        changes: the times of changes, in order, and the new limits.
    """

    def __init__(self, changes: Sequence[tuple[float, int]] = ()) -> None:
        self._times = [seconds for seconds, _ in changes]
        self._limits = [LIMIT, *(limit for _, limit in changes)]

    def at(self, seconds: float) -> Collection[int]:
        """Return the limits that a worker or a broker can have known at a time."""
        first = bisect_right(self._times, seconds - KNOWN_AFTER)
        last = bisect_right(self._times, seconds)
        return self._limits[first : last + 1]


def crashes_of(entries: Iterable[Entry]) -> Mapping[int, list[Entry]]:
    """Return the calls that ended their process, by number, in order."""
    crashes: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in sorted(entries):
        if entry.kind == "crashes":
            crashes[entry.number].append(entry)
    return crashes


def archived_numbers(entries: Iterable[Entry], limits: Limits) -> set[int]:
    """Return the numbers whose last delivery has ended a process.

    A task does not know its delivery: the number of its crashes counts.
    """
    return {
        number
        for number, calls in crashes_of(entries).items()
        if max(len(calls), *(each.count for each in calls))
        >= min(limits.at(calls[-1].seconds))
    }


def broken_rules(
    entries: Iterable[Entry], limits: Limits, *, has_dead_letters: bool
) -> list[str]:
    """Return the calls of crashing records that break a worker's rules."""
    everything = sorted(entries)
    broken = []
    for number, calls in crashes_of(everything).items():
        for call in calls:
            known = limits.at(call.seconds)
            if has_dead_letters and call.count >= max(known):
                broken.append(f"{number} was called on delivery {call.count}")
            if call.count >= max(2, max(known) - SUSPECT):
                others = _running_beside(call, everything)
                if others:
                    broken.append(f"{number} ran beside {sorted(others)}, not alone")
    return broken


def _running_beside(call: Entry, entries: Sequence[Entry]) -> set[int]:
    """Return the other numbers whose calls ran in the process when it ended."""
    running: set[int] = set()
    for entry in entries:
        if entry.process != call.process or entry.seconds > call.seconds:
            continue
        if entry.kind == "begun":
            running.add(entry.number)
        elif entry.kind in ("handled", "raised"):
            running.discard(entry.number)
    return running - {call.number}


def crash_notes(
    entries: Iterable[Entry],
    reasons: Mapping[int, str],
    archived: Collection[int],
) -> list[str]:
    """Return figures: how often records ended a process, and what became of them.

    Args:
        reasons: of dead letters, by number.
    """
    everything = list(entries)
    crashes = crashes_of(everything)
    if not crashes:
        return []
    ends = {
        **dict.fromkeys(archived, "archived"),
        **dict.fromkeys(_numbers(everything, "handled"), "processed"),
        **dict.fromkeys(_numbers(everything, "rejected"), "rejected"),
        **{number: f"dead letter, {reason}" for number, reason in reasons.items()},
    }
    found = Counter(
        f"{calls[0].error} {len(calls)}x: {ends.get(number, 'open')}"
        for number, calls in crashes.items()
    )
    total = sum(map(len, crashes.values()))
    text = ", ".join(f"{count} x ({what})" for what, count in sorted(found.items()))
    return [f"{len(crashes)} records ended a process {total} times: {text}"]


def _numbers(entries: Iterable[Entry], kind: str) -> set[int]:
    return {each.number for each in entries if each.kind == kind}
