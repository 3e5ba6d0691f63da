"""The marks of a lease's records: what was said of each, and how far that has come.

Rule 1: a record is known here by its index; what its offset is, `leases` knows.
Rule 2: nothing here is told to anybody.

Theory of operation
-------------------
Each record has a mark, one byte: open; an acknowledge type that was asked for;
the same, sent; the same, settled. One more state is a type asked for while a
renewal is under way: it is sent when the renewal is answered. Marks live in a
bytearray, so that runs are found and states moved by the C code behind `re` and
`bytes.translate`; a lease of 1,200 records costs about as much as one of 12.

In an explicit loop most records are told the same as the one before. Such a run is
two numbers, until somebody looks at the marks: `follows` is all that happens per
record.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, final

from sharecons._record import RENEW, AcknowledgeType

__all__ = ["AFTER_RENEWAL", "FAILED", "KIND", "LOST", "SENT", "AckStates"]

OPEN: Final = 0x00
SENT: Final = 0x10
SETTLED: Final = 0x20
AFTER_RENEWAL: Final = 0x40
KIND: Final = 0x0F

LOST: Final = SETTLED
"""Settled without a type: the lock was lost before anything was said."""

FAILED: Final = 0x80
"""With a type: that was said, and the lock was lost before the broker applied it."""

_PENDING_RUNS: Final = re.compile(rb"\x01+|\x02+|\x03+|\x04+")
_LOST_RUNS: Final = re.compile(rb"\x20+")
_LOST: Final = re.compile(rb"[\x20\x81-\x84]")
_RENEWING_RUNS: Final = re.compile(rb"[\x14\x41-\x44]+")


def _table(changes: Iterable[tuple[int, int]]) -> bytes:
    table = bytearray(range(256))
    for before, after in changes:
        table[before] = after
    return bytes(table)


_KINDS: Final = (1, 2, 3, 4)
_TERMINAL: Final = (1, 2, 3)
_SET_PENDING: Final[Mapping[int, bytes]] = {
    RENEW: _table([(OPEN, RENEW)]),
    **{
        # A renewal settles nothing: what is said beside it does.
        kind: _table(
            [
                (OPEN, kind),
                (RENEW, kind),
                (SENT | RENEW, AFTER_RENEWAL | kind),
                (AFTER_RENEWAL | RENEW, AFTER_RENEWAL | kind),
            ]
        )
        for kind in _KINDS
        if kind != RENEW
    },
}
_SET_SENT: Final = _table((kind, SENT | kind) for kind in _KINDS)
# A renewed record is open again; a type that waited for the renewal is asked for.
_SETTLE: Final = _table(
    [
        *((SENT | kind, SETTLED | kind) for kind in _KINDS),
        (SENT | RENEW, OPEN),
        *((AFTER_RENEWAL | kind, kind) for kind in _KINDS),
    ]
)
_ABANDON: Final = _table(
    (state | kind, FAILED | kind if kind in _TERMINAL else LOST)
    for state in (OPEN, SENT, AFTER_RENEWAL)
    for kind in (0, *_KINDS)
)
_FAIL_SETTLED: Final = _table((SETTLED | kind, FAILED | kind) for kind in _KINDS)
_SETTLED: Final = bytes(
    [*(SETTLED | kind for kind in (0, *_KINDS)), *(FAILED | kind for kind in _KINDS)]
)
_UNSETTLED: Final = (OPEN, RENEW, SENT | RENEW, AFTER_RENEWAL | RENEW)


@final
class AckStates:
    """The marks of so many records, all of them open."""

    __slots__ = ("_fresh", "_run_kind", "_run_start", "_run_stop", "_states")

    def __init__(self, count: int) -> None:
        self._states = bytearray(count)
        # The latest of what was said, not written down yet.
        self._run_kind: AcknowledgeType | None = None
        self._run_start = 0
        self._run_stop = 0
        # From this index on nothing was said that is written down.
        self._fresh = 0

    def extend_run(self, index: int, kind: AcknowledgeType) -> bool:
        """Mark a record, if it is told the same as the one before, and is fresh."""
        if kind is self._run_kind and index == self._run_stop and index >= self._fresh:
            self._run_stop = index + 1
            return True
        return False

    def __getitem__(self, index: int) -> int:
        return self._current_states[index]

    def __setitem__(self, index: int, mark: int) -> None:
        self._current_states[index] = mark

    def set_pending(self, index: int, kind: AcknowledgeType) -> None:
        """Mark a record of which nothing was sent."""
        self._current_states[index] = kind
        self._fresh = max(self._fresh, index + 1)
        if kind != RENEW:
            self._run_kind = kind
            self._run_start = self._run_stop = index + 1

    def set_pending_if_open(self, part: slice, kind: AcknowledgeType) -> bool:
        """Mark those of a part that are open; tells whether there were any."""
        before = self._current_states[part]
        said = before.translate(_SET_PENDING[kind])
        self._fresh = max(self._fresh, part.stop)
        if said == before:
            return False
        self._current_states[part] = said
        return True

    def set_sent(self) -> None:
        """What was asked for is on its way."""
        self._states = self._current_states.translate(_SET_SENT)

    def settle(self, start: int, stop: int) -> None:
        """What was sent of a part is settled, and a renewed record open again."""
        marks = self._current_states
        if len(marks) == 1 and not start:
            marks[0] = _SETTLE[marks[0]]  # records come one by one, as in `asked`
        else:
            marks[start:stop] = marks[start:stop].translate(_SETTLE)

    def set_failed(self, part: slice, kind: AcknowledgeType) -> None:
        """Note what was said of a part too late."""
        self._current_states[part] = bytes((FAILED | kind,)) * (part.stop - part.start)

    def abandon(self) -> None:
        """The locks are gone: nothing is open, or asked for, any more."""
        self._states = self._current_states.translate(_ABANDON)

    def fail_settled(self, start: int, stop: int) -> None:
        """What was sent of a part has failed, as the locks were lost."""
        self._current_states[start:stop] = self._current_states[start:stop].translate(
            _FAIL_SETTLED
        )

    @property
    def has_open(self) -> bool:
        """True while something may be said of a record that would settle it."""
        marks = self._current_states
        return any(mark in marks for mark in _UNSETTLED)

    @property
    def has_pending(self) -> bool:
        """True while something is to be sent."""
        return _PENDING_RUNS.search(self._current_states) is not None

    @property
    def all_settled(self) -> bool:
        marks = self._current_states
        if len(marks) == 1:
            return marks[0] in _SETTLED
        return not marks.translate(None, _SETTLED)

    def is_open(self, index: int) -> bool:
        return self._current_states[index] in _UNSETTLED

    # Runs: index of the first, index after the last.

    def pending_runs(self) -> list[tuple[int, int]]:
        """Where there is something to be sent, of one kind each."""
        if len(self._states) == 1:
            # Of records that come one by one, the search took most of this.
            return [(0, 1)] if OPEN < self._current_states[0] < SENT else []
        return [found.span() for found in _PENDING_RUNS.finditer(self._current_states)]

    def lost_runs(self, part: slice) -> list[tuple[int, int]]:
        """Where, in a part, locks went before anything was said."""
        return self._found(_LOST_RUNS, part)

    def has_lost(self, part: slice) -> bool:
        """Return whether a lock of a part was lost before its record was settled."""
        return _LOST.search(self._current_states[part]) is not None

    def renewing_runs(self, part: slice) -> list[tuple[int, int]]:
        """Where, in a part, a renewal is under way."""
        return self._found(_RENEWING_RUNS, part)

    def _found(self, kind: re.Pattern[bytes], part: slice) -> list[tuple[int, int]]:
        found = kind.finditer(self._current_states[part])
        return [(part.start + each.start(), part.start + each.end()) for each in found]

    @property
    def _current_states(self) -> bytearray:
        """All of them, written down."""
        start, stop = self._run_start, self._run_stop
        if start < stop:
            assert self._run_kind is not None, "a run has a kind"
            self._states[start:stop] = bytes((self._run_kind,)) * (stop - start)
            self._run_start = stop
            self._fresh = max(self._fresh, stop)
        return self._states
