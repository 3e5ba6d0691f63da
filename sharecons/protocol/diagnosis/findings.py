"""Why a share-partition stands where it stands, in a sentence, and what to do.

Rule 1: every verdict on a share-partition is found here, from values alone.
Rule 2: locks are not told to anybody outside the leader: nothing here says that a
record is locked, only what may be so, and what would show it.

Theory of operation
-------------------
Each rule looks at one partition and gives a finding or none. The worst one comes first
and is the verdict. A partition stands still if nothing more will be handed out whatever
its records are: nobody is there to take them, or the window is full. The window is
counted in offsets from the start offset, settled ones too (KIP-932, "In-flight
records"), so one record that is not settled may stop a partition.
"""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sharecons.protocol.diagnosis.offset_states import (
    ARCHIVED,
    SETTLED,
    UNSETTLED,
    OffsetStatus,
    PartitionInspection,
)

__all__ = ["Finding", "GroupFacts", "Reason", "Severity", "duration", "findings_of"]

NEARLY: Final = 0.8
"""Of the window; what is filled so far is likely to fill up before anybody looks."""


class Severity(enum.IntEnum):
    """How bad it is; the names in lower case are those of JSON."""

    FINE = 0
    NOTE = 1
    WARNING = 2
    STALLED = 3


class Reason(enum.Enum):
    """What a finding is about; the values are those of JSON."""

    SETTLED = "settled"
    WORKING = "working"
    NOT_BEGUN = "not_begun"
    UNSEEN_LOG = "unseen_log"
    REMOVED = "removed"
    ARCHIVED = "archived"
    HELD_UP = "held_up"
    MAY_BE_LOCKED = "may_be_locked"
    NO_PROGRESS = "no_progress"
    DELIVERY_LIMIT = "delivery_limit"
    WINDOW_NEARLY_FULL = "window_nearly_full"
    WINDOW_FULL = "window_full"
    UNASSIGNED = "unassigned"
    NO_MEMBERS = "no_members"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is to be known of a partition, in a sentence."""

    reason: Reason
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """What matters of a group for its partitions; None is what could not be read.

    Attributes:
        members: how many there are.
        record_locks: the window of a partition, in offsets.
        delivery_limit: deliveries after which a record is archived.
        lock_duration: seconds.
    """

    members: int
    record_locks: int | None = None
    delivery_limit: int | None = None
    lock_duration: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A partition, its group, and times in seconds."""

    inside: PartitionInspection
    group: GroupFacts
    now: float
    unchanged: float

    @property
    def waiting(self) -> int:
        return self.inside.count(*UNSETTLED)

    @property
    def settled(self) -> int:
        return self.inside.count(*SETTLED)

    @property
    def first(self) -> str:
        """The first offset that is not settled, and its record's age."""
        oldest = self.inside.oldest
        if oldest is None:
            return f"offset {self.inside.first_unsettled}"
        age = duration(self.now - oldest.timestamp / 1000)
        return f"offset {oldest.offset}, {age} old"


def findings_of(
    inside: PartitionInspection,
    group: GroupFacts,
    *,
    now: float,
    unchanged: float = 0.0,
) -> tuple[Finding, ...]:
    """Say what there is to say of a partition, the worst first; never nothing.

    Args:
        now: seconds since the epoch.
        unchanged: seconds for which the state is known not to have changed.
    """
    case = _Case(inside=inside, group=group, now=now, unchanged=unchanged)
    found = [finding for rule in _RULES for finding in rule(case)]
    return tuple(sorted(found, key=lambda each: -each.severity) or [_well(case)])


def duration(seconds: float) -> str:
    """Spell a time as people do, in its two greatest units."""
    left = max(0, round(seconds))
    spelt: list[str] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number or (name == "s" and not spelt):
            spelt.append(f"{number} {name}")
        elif spelt:
            break
    return " ".join(spelt[:2])


def _not_begun(case: _Case) -> Iterator[Finding]:
    if case.inside.start_offset is None:
        text = "the group has not begun to read here"
        if not case.group.members:
            text += ", and has no members"
        yield _finding(Reason.NOT_BEGUN, Severity.NOTE, text)


def _unseen_log(case: _Case) -> Iterator[Finding]:
    if case.inside.start_offset is not None and case.inside.end_offset is None:
        text = "the partition's leader did not tell where its log ends"
        yield _finding(Reason.UNSEEN_LOG, Severity.WARNING, text)


def _removed(case: _Case) -> Iterator[Finding]:
    if removed := case.inside.count(OffsetStatus.REMOVED):
        text = (
            f"retention removed {_offsets(removed)} before the group settled them; "
            "the log now starts at "
            f"{case.inside.log_start_offset}"
        )
        yield _finding(Reason.REMOVED, Severity.WARNING, text)


def _nobody(case: _Case) -> Iterator[Finding]:
    if not case.waiting:
        return
    if not case.group.members:
        text = f"the group has no members; {_offsets(case.waiting)} wait for a consumer"
        yield _finding(Reason.NO_MEMBERS, Severity.STALLED, text)
    elif not case.inside.members:
        text = (
            f"none of the {_members(case.group.members)} has this partition; "
            "is its topic subscribed to?"
        )
        yield _finding(Reason.UNASSIGNED, Severity.STALLED, text)


def _window(case: _Case) -> Iterator[Finding]:
    limit, window = case.group.record_locks, case.inside.window
    open_ = case.inside.count(OffsetStatus.OPEN)
    if limit is None or not open_ or window < limit * NEARLY:
        return
    if window < limit:
        text = (
            f"the window is nearly full: {window:,} of {limit:,} offsets, "
            f"of which {open_:,} are not settled, the first is {case.first}"
        )
        yield _finding(Reason.WINDOW_NEARLY_FULL, Severity.WARNING, text)
        return
    behind = "one record" if open_ == 1 else f"{open_:,} records"
    text = (
        f"the window is full behind {behind}: {case.settled:,} of {window:,} offsets "
        f"are settled and wait for {case.first}; nothing after "
        f"{_last_of_window(case.inside)} is handed out before"
    )
    yield _finding(Reason.WINDOW_FULL, Severity.STALLED, text)


def _held_up(case: _Case) -> Iterator[Finding]:
    limit = case.group.record_locks
    if limit is not None and case.inside.window >= limit * NEARLY:
        return
    open_ = case.inside.count(OffsetStatus.OPEN)
    if case.settled and open_:
        text = (
            f"{_offsets(case.settled)} settled, and the start offset waits for "
            f"{case.first}, available or locked"
        )
        yield _finding(Reason.HELD_UP, Severity.NOTE, text)


def _delivery_limit(case: _Case) -> Iterator[Finding]:
    limit = case.group.delivery_limit
    if limit is None or limit < 2:
        return
    counts = case.inside.delivery_counts
    if near := sum(number for count, number in counts.items() if count >= limit - 1):
        have = "has" if near == 1 else "have"
        text = (
            f"{_offsets(near)} {have} one delivery left of {limit}: whoever lets go "
            "then archives what it had"
        )
        yield _finding(Reason.DELIVERY_LIMIT, Severity.WARNING, text)


def _archived(case: _Case) -> Iterator[Finding]:
    limit = case.group.delivery_limit
    at_limit = before = 0
    for each in case.inside.ranges:
        if each.status in ARCHIVED:
            if limit is not None and (each.delivery_count or 0) >= limit:
                at_limit += each.count
            else:
                before += each.count
    if at_limit:
        text = f"at the delivery limit of {limit}"
        yield _of_archived(Severity.WARNING, at_limit, text)
    if before:
        text = "before the delivery limit (rejected)"
        if limit is None:
            text = "(rejected, or at the delivery limit)"
        yield _of_archived(Severity.NOTE, before, text)


def _of_archived(severity: Severity, count: int, when: str) -> Finding:
    records = "its record is" if count == 1 else "these records are"
    text = f"{_offsets(count)} archived {when}: {records} not delivered again"
    return _finding(Reason.ARCHIVED, severity, text)


def _locks(case: _Case) -> Iterator[Finding]:
    """What may be so, where a window's worth waits and nothing above start is known."""
    limit, lock = case.group.record_locks, case.group.lock_duration
    if not case.inside.members or case.inside.window or limit is None:
        return
    if case.inside.count(OffsetStatus.ABOVE) < limit:
        return
    text = (
        f"nothing from the start offset on was settled or let go; its "
        f"{_members(len(case.inside.members))} may hold up to {limit:,} locks, or have "
        "not fetched yet: locks are in the leader's memory alone"
    )
    if lock is not None:
        text += f". Look again: locks last {duration(lock)}"
    yield _finding(Reason.MAY_BE_LOCKED, Severity.NOTE, text)


def _no_progress(case: _Case) -> Iterator[Finding]:
    lock, unchanged = case.group.lock_duration, case.unchanged
    if lock is None or unchanged <= lock:
        return
    if not case.waiting or not case.inside.members:
        return
    text = (
        f"nothing was settled or let go for {duration(unchanged)}, and locks last "
        f"{duration(lock)}: its {_members(len(case.inside.members))} renew what they "
        "hold, or do not fetch"
    )
    yield _finding(Reason.NO_PROGRESS, Severity.WARNING, text)


_RULES: Final[tuple[Callable[[_Case], Iterator[Finding]], ...]] = (
    _nobody,
    _window,
    _no_progress,
    _delivery_limit,
    _removed,
    _unseen_log,
    _held_up,
    _archived,
    _locks,
    _not_begun,
)


def _well(case: _Case) -> Finding:
    if not case.waiting:
        return _finding(Reason.SETTLED, Severity.FINE, "all is settled")
    text = f"{_offsets(case.waiting)} to be settled"
    return _finding(Reason.WORKING, Severity.FINE, text)


def _last_of_window(inside: PartitionInspection) -> int:
    return (inside.start_offset or 0) + inside.window - 1


def _finding(reason: Reason, severity: Severity, text: str) -> Finding:
    return Finding(reason=reason, severity=severity, text=text)


def _offsets(count: int) -> str:
    return "1 offset" if count == 1 else f"{count:,} offsets"


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count:,} members"
