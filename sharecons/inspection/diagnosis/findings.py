"""Findings: why a share-partition makes no progress, in one sentence each.

Rule 1: all findings about a share-partition are made here, from values alone.
Rule 2: only the partition leader knows acquisition locks. No finding claims that a
record is locked, only that it might be.

Theory of operation
-------------------
Each rule takes one partition and yields its findings, if any. They are sorted by
severity, the worst first. A partition is stalled if no more records can be delivered:
no consumer has it assigned, or its window is full. The window begins at the start
offset and counts all offsets, even settled ones (KIP-932, "In-flight records"), so a
single unsettled record can stall a partition. "Settled" means acknowledged or archived.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sharecons.group_state.group_facts import GroupFacts
from sharecons.group_state.group_states import PartitionState
from sharecons.group_state.offset_states import (
    ARCHIVED,
    SETTLED,
    UNSETTLED,
    OffsetStatus,
)
from sharecons.inspection.diagnosis.finding import Finding, Reason, Severity
from sharecons.inspection.diagnosis.formats import format_duration
from sharecons.inspection.diagnosis.formats import format_members as _members
from sharecons.inspection.diagnosis.formats import format_offsets as _offsets
from sharecons.inspection.diagnosis.formats import format_waiting as _waiting

__all__ = [
    "Finding",
    "Reason",
    "Severity",
    "findings_of",
    "may_stand_still",
    "missing_topic_finding",
]

LOOK: Final = (
    "`sharecons groups members` shows where the members run; their /readyz and logs "
    "say what holds records"
)
"""Advice if members hold records."""

_STOPPED_LEADER: Final = (
    "If nothing does, the leader of the partition stands still: all {:,} offsets of "
    "the window are settled, and Kafka (4.3 and 4.4) can stop there after a leader has "
    "changed. Move the leader again, or stop all members of the group and start them"
)
"""A leader does, if it loads a window above the limit of which the first is open."""

NEARLY_FULL: Final = 0.8
"""Fraction of the window above which a warning is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """The input of the rules: a partition, its group, and times in seconds."""

    partition: PartitionState
    group: GroupFacts
    now: float
    unchanged_for: float | None

    @property
    def age(self) -> float | None:
        """The age of the first unsettled record, in seconds; None if unknown."""
        oldest = self.partition.oldest
        return None if oldest is None else oldest.age(self.now)

    @property
    def waits_longer_than_a_lock(self) -> bool:
        """True if the first unsettled record waits, unchanged, for longer than a lock.

        A state that is unchanged for an hour says nothing about a record of a second
        ago, nor an old record about a group that has just joined. Without one of the
        two times, the other has to do.
        """
        known = [each for each in (self.unchanged_for, self.age) if each is not None]
        lock = self.group.lock_duration
        return lock is not None and bool(known) and min(known) > lock

    @property
    def may_be_unassigned(self) -> bool:
        """True if the partition can be without members because they just joined.

        Brokers assign partitions about a second after the first member has joined.
        """
        lock, unchanged = self.group.lock_duration or 0.0, self.unchanged_for or 0.0
        return self.partition.start_offset is None and unchanged <= lock

    def fills_window(self, fraction: float = 1.0) -> bool:
        limit = self.group.record_locks
        return limit is not None and self.partition.window >= limit * fraction

    @property
    def open(self) -> int:
        return self.partition.count(OffsetStatus.OPEN)

    @property
    def unsettled(self) -> int:
        return self.partition.count(*UNSETTLED)

    @property
    def settled(self) -> int:
        return self.partition.count(*SETTLED)

    @property
    def first(self) -> str:
        """The first unsettled offset and the age of its record, as text."""
        oldest = self.partition.oldest
        if oldest is None:
            return f"offset {self.partition.first_unsettled}"
        age = self.age
        known = "of unknown age" if age is None else f"{format_duration(age)} old"
        return f"offset {oldest.offset}, {known}"


def findings_of(
    partition: PartitionState,
    group: GroupFacts,
    *,
    now: float,
    unchanged_for: float | None = None,
) -> tuple[Finding, ...]:
    """Return the findings about a partition, the worst first; at least one.

    Args:
        now: seconds since the epoch.
        unchanged_for: seconds for which the state is known to be unchanged; None if
            this is the first look at it.
    """
    case = _Case(partition=partition, group=group, now=now, unchanged_for=unchanged_for)
    found = [finding for rule in _RULES for finding in rule(case)]
    return tuple(sorted(found, key=lambda each: -each.severity) or [_no_problem(case)])


def may_stand_still(partition: PartitionState, group: GroupFacts, now: float) -> bool:
    """Return True if a record waits for longer than a lock lasts, or of unknown age.

    Whether the partition stands still depends on when its state was written.
    """
    case = _Case(partition=partition, group=group, now=now, unchanged_for=math.inf)
    return bool(case.unsettled and partition.members) and case.waits_longer_than_a_lock


def missing_topic_finding(subscribers: int) -> Finding:
    """Return the finding about a topic that does not exist."""
    verb = "subscribes" if subscribers == 1 else "subscribe"
    text = (
        f"the topic does not exist, and {_members(subscribers)} {verb} to it; create "
        "it, or correct the subscription"
    )
    return _finding(Reason.MISSING_TOPIC, Severity.STALLED, text)


def _not_started(case: _Case) -> Iterator[Finding]:
    if case.partition.start_offset is not None:
        return
    if not case.group.members:
        text = "the group has not started to read this partition, and has no members"
        yield _finding(Reason.NOT_BEGUN, Severity.NOTE, text)
    elif case.unsettled and case.partition.members and case.waits_longer_than_a_lock:
        yield _finding(Reason.HELD, Severity.STALLED, _held_text(case))
    else:
        text = "the group has settled nothing in this partition yet"
        yield _finding(Reason.NOT_BEGUN, Severity.NOTE, text + _beginning(case))


def _skipped(case: _Case) -> Iterator[Finding]:
    """Report records before the start of a group that has settled nothing yet."""
    start, log_start = case.partition.start_offset, case.partition.log_start_offset
    if start is None or log_start is None or start <= log_start:
        return
    if any(each.delivery_count is not None for each in case.partition.ranges):
        return  # settled records are before the start as well
    skipped, reset = _offsets(start - log_start), case.group.offset_reset
    now = "" if reset is None else f" (now {reset})"
    text = (
        f"the group began at offset {start}, by share.auto.offset.reset{now} or by a "
        f"reset of its offsets, and has settled nothing since: {skipped} in the log "
        "before it, which it never receives. To process them, stop the members and use "
        "`sharecons groups reset-offsets`"
    )
    yield _finding(Reason.SKIPPED, Severity.NOTE, text)


def _held_text(case: _Case) -> str:
    members, lock = len(case.partition.members), case.group.lock_duration or 0.0
    its = "its member holds" if members == 1 else f"its {members:,} members hold"
    return (
        f"nothing was ever settled or released, and {_waiting(case.unsettled)}, "
        f"the first is {case.first}: {its} records without settling them, or cannot "
        f"fetch. {LOOK}; look at consumers for records that are never acknowledged. If "
        f"the members joined just now, inspect again in {format_duration(lock)}"
    )


def _beginning(case: _Case) -> str:
    """Return a clause on which records the group will receive."""
    reset = case.group.offset_reset
    if case.unsettled and not case.partition.members:
        return f" and assigned it to no member; {_waiting(case.unsettled)}"
    if case.unsettled:
        return f"; {_waiting(case.unsettled)}, the first is {case.first}"
    if reset is None or reset == "earliest":
        return ""
    start, end = case.partition.log_start_offset, case.partition.end_offset
    known = ""
    if start is not None and end is not None:
        known = f" (the log has {_offsets(end - start)} now)"
    return (
        f". It begins by share.auto.offset.reset={reset}, and where that is, is stored "
        f"with the first settled record: records before it{known} are never delivered "
        "(to process them, stop the members and use groups reset-offsets), and records "
        "after it that members hold are only found by --watch and by the exporter"
    )


def _unknown_log_end(case: _Case) -> Iterator[Finding]:
    if case.partition.start_offset is not None and case.partition.end_offset is None:
        text = "the partition leader did not return the end of the log"
        yield _finding(Reason.UNSEEN_LOG, Severity.WARNING, text)


def _open_transaction(case: _Case) -> Iterator[Finding]:
    stable, end = case.partition.stable_offset, case.partition.end_offset
    if stable is not None and end is not None and stable < end:
        text = (
            f"{_offsets(end - stable)} from offset {stable} on wait for the end of a "
            "transaction: the group reads committed records. If it does not end, find "
            "it with kafka-transactions.sh find-hanging"
        )
        yield _finding(Reason.OPEN_TRANSACTION, Severity.NOTE, text)


def _removed(case: _Case) -> Iterator[Finding]:
    if removed := case.partition.count(OffsetStatus.REMOVED):
        text = (
            f"retention removed {_offsets(removed)} before they were settled; the log "
            f"now starts at offset {case.partition.log_start_offset}"
        )
        yield _finding(Reason.REMOVED, Severity.WARNING, text)


def _no_consumer(case: _Case) -> Iterator[Finding]:
    if not case.unsettled:
        return
    if not case.group.members:
        text = f"the group has no members; {_waiting(case.unsettled)} for a consumer"
        yield _finding(Reason.NO_MEMBERS, Severity.STALLED, text)
    elif not case.partition.members and not case.may_be_unassigned:
        text = (
            "the partition is not assigned to any of the "
            f"{_members(case.group.members)}; check that one subscribes to its topic"
        )
        yield _finding(Reason.UNASSIGNED, Severity.STALLED, text)


def _window(case: _Case) -> Iterator[Finding]:
    limit, window, open_ = case.group.record_locks, case.partition.window, case.open
    if limit is None or not open_ or window < limit * NEARLY_FULL:
        return
    if window < limit:
        text = (
            f"the window is nearly full: {window:,} of {limit:,} offsets, "
            f"{open_:,} of them unsettled, the first is {case.first}"
        )
        yield _finding(Reason.WINDOW_NEARLY_FULL, Severity.WARNING, text)
        return
    last = (case.partition.start_offset or 0) + window - 1
    behind = "one record" if open_ == 1 else f"{open_:,} records"
    text = (
        f"the window is full behind {behind}: {case.settled:,} of {window:,} offsets "
        f"are settled and wait for {case.first}; nothing after offset "
        f"{last} is delivered until then. `sharecons peek` shows the record; {LOOK}"
    )
    yield _finding(Reason.WINDOW_FULL, Severity.STALLED, text)


def _held_up(case: _Case) -> Iterator[Finding]:
    if case.settled and case.open and not case.fills_window(NEARLY_FULL):
        text = (
            f"{_offsets(case.settled)} settled; the start offset waits for "
            f"{case.first}, available or locked"
        )
        yield _finding(Reason.HELD_UP, Severity.NOTE, text)


def _delivery_limit(case: _Case) -> Iterator[Finding]:
    limit = case.group.delivery_limit
    if limit is None or limit < 2:
        return
    counts = case.partition.delivery_counts
    if near := sum(number for count, number in counts.items() if count >= limit - 1):
        have = "has" if near == 1 else "have"
        text = (
            f"{_offsets(near)} {have} one of {limit} deliveries left; a release or an "
            "expired lock after it archives the record"
        )
        yield _finding(Reason.DELIVERY_LIMIT, Severity.WARNING, text)


def _archived(case: _Case) -> Iterator[Finding]:
    limit = case.group.delivery_limit
    at_limit = before = 0
    for each in case.partition.ranges:
        if each.status in ARCHIVED:
            if limit is not None and (each.delivery_count or 0) >= limit:
                at_limit += each.count
            else:
                before += each.count
    if at_limit:
        text = (
            f"{_offsets(at_limit)} archived at the delivery limit of {limit}: not "
            "delivered again"
        )
        yield _finding(Reason.ARCHIVED, Severity.WARNING, text)
    if before:
        when = "" if limit is None else " before the delivery limit"
        also = " or at the delivery limit," if limit is None else ""
        rest = "" if case.unsettled else "; nothing else waits"
        text = (
            f"{_offsets(before)} archived{when}: rejected,{also} or markers of "
            f"transactions; not delivered again{rest}"
        )
        yield _finding(Reason.ARCHIVED, Severity.NOTE, text)


def _locks(case: _Case) -> Iterator[Finding]:
    """Report possible locks if a whole window waits and no state is written of it."""
    limit, lock = case.group.record_locks, case.group.lock_duration
    if not case.partition.members or case.partition.window or limit is None:
        return
    is_new = case.partition.start_offset is None
    if is_new or case.partition.count(OffsetStatus.ABOVE) < limit:
        return
    text = (
        "nothing at or above the start offset was settled or released; its "
        f"{_members(len(case.partition.members))} might hold up to {limit:,} locks, or "
        "have not fetched yet (only the partition leader knows the locks)"
    )
    if lock is not None:
        text += f". Inspect again after {format_duration(lock)}, when locks expire"
    yield _finding(Reason.MAY_BE_LOCKED, Severity.NOTE, text)


def _no_progress(case: _Case) -> Iterator[Finding]:
    lock, unchanged = case.group.lock_duration, case.unchanged_for
    if lock is None or unchanged is None or not case.waits_longer_than_a_lock:
        return
    partition = case.partition
    if not (case.unsettled and partition.members) or partition.start_offset is None:
        return
    members = len(partition.members)
    its = "its member renews its" if members == 1 else f"its {members:,} members renew"
    text = (
        f"nothing was settled or released for {format_duration(unchanged)}, and locks "
        f"last {format_duration(lock)}: {its} locks, or cannot fetch; the first record "
        f"that waits is {case.first}"
    )
    if not (case.fills_window() and case.open):
        text += f". {LOOK}"
        if case.fills_window():
            text += f". {_STOPPED_LEADER.format(partition.window)}"
    yield _finding(Reason.NO_PROGRESS, Severity.WARNING, text)


_RULES: Final[tuple[Callable[[_Case], Iterator[Finding]], ...]] = (
    _no_consumer,
    _window,
    _no_progress,
    _delivery_limit,
    _removed,
    _unknown_log_end,
    _open_transaction,
    _held_up,
    _archived,
    _locks,
    _not_started,
    _skipped,
)


def _no_problem(case: _Case) -> Finding:
    if not case.unsettled:
        return _finding(Reason.SETTLED, Severity.FINE, "all offsets are settled")
    text = f"{_offsets(case.unsettled)} not settled yet"
    return _finding(Reason.WORKING, Severity.FINE, text)


def _finding(reason: Reason, severity: Severity, text: str) -> Finding:
    return Finding(reason=reason, severity=severity, text=text)
