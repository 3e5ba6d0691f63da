"""The acknowledgement state of each record of a lease.

Records are numbered by index; a lease maps offsets to indexes.

Theory of operation
-------------------
The state is one byte: open, or an acknowledge type that is pending, sent or settled. An
acknowledgement during a renewal in flight has a state of its own; it becomes pending
with the response to the renewal. A record with a delayed release is in DELAYED until
the release is pending, and in RENEW_DELAYED while a renewal is pending that keeps its
lock; it can be acknowledged in another way until then. The states are a bytearray:
`re` and `bytes.translate` find and change runs in C, so a lease of 1,200 records costs
about the same as one of 12.

A loop that acknowledges explicitly mostly repeats the type of the record before. This
run is kept as two numbers until the states are read: `extend_run` is the only call per
record.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, final

from sharecons._record import RELEASE, RENEW, AcknowledgeType

__all__ = [
    "AFTER_RENEWAL",
    "DELAYED",
    "FAILED",
    "KIND",
    "LOST",
    "RENEW_DELAYED",
    "SENT",
    "AckStates",
]

OPEN: Final = 0x00
DELAYED: Final = 0x05
RENEW_DELAYED: Final = 0x06
SENT: Final = 0x10
SETTLED: Final = 0x20
AFTER_RENEWAL: Final = 0x40
KIND: Final = 0x0F

LOST: Final = SETTLED
"""Settled without a type: the lock was lost before an acknowledgement."""

FAILED: Final = 0x80
"""With a type: the lock was lost before the broker applied the acknowledgement."""

_PENDING_RUNS: Final = re.compile(rb"\x01+|\x02+|\x03+|\x04+|\x06+")
_LOST_RUNS: Final = re.compile(rb"\x20+")
_LOST_OR_FAILED_RUNS: Final = re.compile(rb"[\x20\x81-\x84]+")
_UNSETTLED_RUNS: Final = re.compile(rb"[^\x21-\x24]+", re.DOTALL)
_RENEWING_RUNS: Final = re.compile(rb"[\x14\x41-\x45]+")


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
        # A renewal does not settle a record: a later type does.
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
_RELEASE_DELAYED: Final = _table(
    [
        (DELAYED, RELEASE),
        (RENEW_DELAYED, RELEASE),
        (AFTER_RENEWAL | DELAYED, AFTER_RENEWAL | RELEASE),
    ]
)
_REOPEN: Final = _table(
    [
        (DELAYED, OPEN),
        (RENEW_DELAYED, RENEW),
        (AFTER_RENEWAL | DELAYED, SENT | RENEW),
    ]
)
_DELAYED_STATES: Final = bytes([DELAYED, RENEW_DELAYED, AFTER_RENEWAL | DELAYED])
_SET_SENT: Final = _table(
    [
        *((kind, SENT | kind) for kind in _KINDS),
        (RENEW_DELAYED, AFTER_RENEWAL | DELAYED),
    ]
)
# A renewed record is open again; a type that waited for the renewal is pending.
_SETTLE: Final = _table(
    [
        *((SENT | kind, SETTLED | kind) for kind in _KINDS),
        (SENT | RENEW, OPEN),
        *((AFTER_RENEWAL | kind, kind) for kind in (*_KINDS, DELAYED)),
    ]
)
_ABANDON: Final = _table(
    [
        *(
            (state | kind, FAILED | kind if kind in _TERMINAL else LOST)
            for state in (OPEN, SENT, AFTER_RENEWAL)
            for kind in (0, *_KINDS)
        ),
        *((state, FAILED | RELEASE) for state in _DELAYED_STATES),
    ]
)
_FAIL_SETTLED: Final = _table((SETTLED | kind, FAILED | kind) for kind in _KINDS)
_SETTLED: Final = bytes(
    [*(SETTLED | kind for kind in (0, *_KINDS)), *(FAILED | kind for kind in _KINDS)]
)
_UNSETTLED: Final = (OPEN, RENEW, SENT | RENEW, AFTER_RENEWAL | RENEW)


@final
class AckStates:
    """The states of `count` records, initially open."""

    __slots__ = ("_fresh", "_run_kind", "_run_start", "_run_stop", "_states")

    def __init__(self, count: int) -> None:
        self._states = bytearray(count)
        # The latest run, not yet written to `_states`.
        self._run_kind: AcknowledgeType | None = None
        self._run_start = 0
        self._run_stop = 0
        # From this index on all of `_states` is open.
        self._fresh = 0

    def extend_run(self, index: int, kind: AcknowledgeType) -> bool:
        """Set a record pending, and return True, if it continues the latest run."""
        if kind is self._run_kind and index == self._run_stop and index >= self._fresh:
            self._run_stop = index + 1
            return True
        return False

    def __getitem__(self, index: int) -> int:
        return self._current_states[index]

    def __setitem__(self, index: int, state: int) -> None:
        self._current_states[index] = state

    def set_pending(self, index: int, kind: AcknowledgeType) -> None:
        """Set a record pending of which nothing was sent."""
        self._current_states[index] = kind
        self._fresh = max(self._fresh, index + 1)
        if kind != RENEW:
            self._run_kind = kind
            self._run_start = self._run_stop = index + 1

    def delay(self, index: int) -> bool:
        """Delay a release that was not sent; return False if it was sent or lost."""
        state = self._current_states[index]
        if state == RELEASE:
            self._states[index] = DELAYED
        elif state == AFTER_RENEWAL | RELEASE:
            self._states[index] = AFTER_RENEWAL | DELAYED
        else:
            return False
        return True

    def release_delayed(self) -> None:
        """Set all delayed releases pending, or after their renewals."""
        self._states = self._current_states.translate(_RELEASE_DELAYED)

    def reopen(self, part: slice) -> None:
        """Open the records of a part again whose release is delayed."""
        self._current_states[part] = self._current_states[part].translate(_REOPEN)

    def set_pending_if_open(self, part: slice, kind: AcknowledgeType) -> bool:
        """Set the open records of a part pending; return whether there were any."""
        before = self._current_states[part]
        after = before.translate(_SET_PENDING[kind])
        self._fresh = max(self._fresh, part.stop)
        if after == before:
            return False
        self._current_states[part] = after
        return True

    def set_sent(self) -> None:
        """Change pending to sent."""
        self._states = self._current_states.translate(_SET_SENT)

    def settle(self, start: int, stop: int) -> None:
        """Change sent to settled in a part; renewed records are open again."""
        states = self._current_states
        if len(states) == 1 and not start:
            states[0] = _SETTLE[states[0]]  # faster, as in `pending_runs`
        else:
            states[start:stop] = states[start:stop].translate(_SETTLE)

    def set_failed(self, part: slice, kind: AcknowledgeType) -> None:
        """Mark a part as acknowledged after its locks were lost."""
        self._current_states[part] = bytes((FAILED | kind,)) * (part.stop - part.start)

    def abandon(self) -> None:
        """Settle all records, as their locks are lost."""
        self._states = self._current_states.translate(_ABANDON)

    def fail_settled(self, start: int, stop: int) -> None:
        """Change settled to failed in a part, as its locks were lost."""
        self._current_states[start:stop] = self._current_states[start:stop].translate(
            _FAIL_SETTLED
        )

    @property
    def has_open(self) -> bool:
        """True if a record can still be acknowledged."""
        states = self._current_states
        return any(state in states for state in _UNSETTLED)

    @property
    def has_pending(self) -> bool:
        """True if an acknowledgement must be sent."""
        return _PENDING_RUNS.search(self._current_states) is not None

    @property
    def all_settled(self) -> bool:
        states = self._current_states
        if len(states) == 1:
            return states[0] in _SETTLED
        return not states.translate(None, _SETTLED)

    @property
    def unsettled_count(self) -> int:
        # Callable in any thread: a run not yet written is open in `_states`.
        return len(self._states.translate(None, _SETTLED))

    def is_open(self, index: int) -> bool:
        return self._current_states[index] in _UNSETTLED

    def delayed_state(self, index: int) -> int:
        """Return DELAYED, RENEW_DELAYED while it is renewed, or 0 if it is neither."""
        state = self._current_states[index]
        if state == AFTER_RENEWAL | DELAYED:
            return RENEW_DELAYED
        return state if state in (DELAYED, RENEW_DELAYED) else 0

    # Runs: the index of the first record, and the index after the last.

    def pending_runs(self) -> list[tuple[int, int]]:
        """Return the runs to send, each of one type."""
        if len(self._states) == 1:
            # For a single record the search would take most of the time.
            state = self._current_states[0]
            return [(0, 1)] if OPEN < state < SENT and state != DELAYED else []
        return [found.span() for found in _PENDING_RUNS.finditer(self._current_states)]

    def kind_at(self, index: int) -> int:
        """Return the acknowledge type that is sent for a pending record."""
        state = self._current_states[index]
        return RENEW.value if state == RENEW_DELAYED else state

    def lost_runs(self, part: slice) -> list[tuple[int, int]]:
        """Return the runs of a part whose locks were lost before an acknowledgement."""
        return self._found(_LOST_RUNS, part)

    def unsettled_runs(self) -> list[tuple[int, int]]:
        """Return the runs whose acknowledgements were not applied, or were lost."""
        return self._found(_UNSETTLED_RUNS, slice(0, len(self._states)))

    def has_lost(self, part: slice) -> bool:
        """Return whether a lock of a part was lost before its record was settled."""
        return _LOST_OR_FAILED_RUNS.search(self._current_states[part]) is not None

    def renewing_runs(self, part: slice) -> list[tuple[int, int]]:
        """Return the runs of a part with a renewal in flight."""
        return self._found(_RENEWING_RUNS, part)

    def _found(self, kind: re.Pattern[bytes], part: slice) -> list[tuple[int, int]]:
        found = kind.finditer(self._current_states[part])
        return [(part.start + each.start(), part.start + each.end()) for each in found]

    @property
    def _current_states(self) -> bytearray:
        """The states, with the latest run written to them."""
        start, stop = self._run_start, self._run_stop
        if start < stop:
            assert self._run_kind is not None, "a run has a kind"
            self._states[start:stop] = bytes((self._run_kind,)) * (stop - start)
            self._run_start = stop
            self._fresh = max(self._fresh, stop)
        return self._states
