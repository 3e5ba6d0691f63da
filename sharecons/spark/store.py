"""The ledger's store: numbered entries, each created only if it is not there yet.

Whatever a driver tells the ledger, it writes here first. The number of an entry is
what keeps two drivers apart: of two who create the same one, the second is told so, and
must stop. Opening the ledger writes an entry too, so a driver that is believed dead and
still writes finds its next number taken.

What a crash leaves, wherever it happens
----------------------------------------
- before an entry is there: nothing. What it would have said was not accepted, and the
  group gives it again;
- after it, before the answer: the segment is in the ledger. It is given again, known,
  and only accepted;
- between the snapshot of a trim and the removal of what it replaces: entries that
  loading passes over, and the next driver's first sweep removes.
"""

import os
import platform
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final, final
from uuid import uuid4

from sharecons.config.validation import check_group_id, member_id_of
from sharecons.log import get_logger
from sharecons.spark import entries
from sharecons.spark.entries import Identity
from sharecons.spark.errors import LedgerError, LedgerLostError, LedgerTakenError
from sharecons.spark.history import (
    Rebuilt,
    known_identity,
    ledger_errors,
    name_of,
    read_history,
    rebuild,
    taken_over,
)
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.loads import Load, Loads
from sharecons.spark.storage import Storage, storage_of

__all__ = ["Store"]

_log = get_logger(__name__)

READINGS: Final = 5
"""Attempts to read a ledger while a driver removes entries of it."""

SWEPT_AT_ONCE: Final = 16
"""Entries that a sweep removes before its caller may end it: on an object store each
takes a request."""


@final
class Store:
    """Keeps the ledger of one query; see the top of this file for what it stands.

    Calls block, and may come from several threads; the ledger itself may not, so who
    shares it keeps a lock of its own.

    Attributes:
        identity: whose ledger it is; there once it is loaded.
    """

    identity: Identity

    def __init__(
        self,
        location: str | Storage,
        options: Mapping[str, Any] | None = None,
        lock: LoadLock | None = None,
    ) -> None:
        """`location` is a directory or a URL, `options` go to its file system.

        `lock` is held from `load` to `close`, whether or not the place has locks.

        Raises:
            ConfigurationError: such a place cannot keep a ledger.
        """
        self._location = str(location)
        self._place = (
            storage_of(location, options) if isinstance(location, str) else location
        )
        self._driver = uuid4().hex
        self._writing = Lock()
        # None while it is not known what the next number is.
        self._next: int | None = None
        self._end = 0
        self._oldest = 0  # of the entries that are there; `sweep`'s alone
        self._keep = 0  # all before it is of no use any more
        # The numbers of segments that are kept, and the positions where they end.
        self._segments: deque[tuple[int, int]] = deque()
        self._loads = Loads()
        self._load_lock = lock

    @property
    def member_id(self) -> str:
        """The id under which every driver of this ledger joins the group.

        A restarted driver that joins under it has its partitions at once, instead of
        waiting for the end of its own old session.
        """
        return self.identity.member_id

    def load(self, group_id: str, *, patience: float = 0.0) -> Ledger:
        """Take the ledger over, making it if it is not there, and read it.

        A driver on the same machine that is still alive is waited for `patience`
        seconds; anywhere else, an older driver is turned away at its next entry.

        Raises:
            LedgerTakenError: another driver is at work on it.
            LedgerMismatchError: it is the ledger of another group.
            LedgerLostError: entries are damaged, or missing.
            LedgerError: the place cannot be read or written.
        """
        check_group_id(group_id)
        with self._writing:
            try:
                if self._load_lock is not None:
                    self._load_lock.acquire()
                self._lock(patience)
                return self._take_over(group_id)
            except BaseException:
                self._unlock()
                raise

    def read(self, group_id: str) -> Rebuilt:
        """Read the ledger as it is now, without taking it over.

        Raises:
            LedgerMismatchError: it is the ledger of another group.
            LedgerLostError: entries are damaged, or missing.
            LedgerError: the place cannot be read.
        """
        check_group_id(group_id)
        for attempt in range(READINGS):
            with suppress(LedgerTakenError, LedgerLostError):
                return self._read(group_id)
            _log.debug("reads the ledger again", attempt=attempt)
        return self._read(group_id)

    def _read(self, group_id: str) -> Rebuilt:
        history = read_history(self._place, self._location)
        known_identity(history, group_id, self._location)
        return rebuild(history, self._location)

    def append(self, segment: Sequence[AcquiredRange]) -> None:
        """Write what is to be entered; it is durable when this returns.

        After any error the store must be loaded again: whether the entry is there is
        not known.

        Raises:
            LedgerTakenError: another driver took the ledger over.
            LedgerError: it could not be written.
        """
        if not segment:
            return
        with self._writing:
            number = self._write(entries.taken(self._driver, self._end, segment))
            self._end += sum(taken.size for taken in segment)
            self._segments.append((number, self._end))

    def trim(self, ledger: Ledger) -> None:
        """Keep no more the segments that the ledger has trimmed.

        Their offsets that may be given again are written down; `sweep` then removes
        them. Nothing is written if no segment is done with.

        Raises:
            LedgerTakenError: another driver took the ledger over.
            LedgerError: it could not be written.
        """
        with self._writing:
            rest = [one for one in self._segments if one[1] > ledger.begin]
            if len(rest) == len(self._segments):
                return
            keep = rest[0][0] if rest else self._known_next()
            self._write(
                entries.trimmed(
                    self._driver,
                    self.identity,
                    begin=ledger.begin,
                    keep=keep,
                    topics=ledger.topics,
                    remembered=ledger.remembered,
                    loads=self._loads,
                )
            )
            self._segments = deque(rest)
            self._keep = keep

    def sweep(self) -> bool:
        """Remove some entries that are of no use; tell whether there are more.

        It may run beside all else, and may be left out: what is there still is passed
        over by who loads the ledger. Apart from `trim`, because Spark waits for that.
        """
        until = min(self._keep, self._oldest + SWEPT_AT_ONCE)
        try:
            # The oldest first, so that what is left has no hole.
            while self._oldest < until:
                self._remove_oldest()
        except Exception as error:  # noqa: BLE001 - each file system has its own
            _log.warning(
                "old entries of the ledger could not be removed; the next sweep tries "
                "again",
                location=self._location,
                number=self._oldest,
                error=str(error),
            )
            return False
        return self._oldest < self._keep

    def _remove_oldest(self) -> None:
        self._place.remove(name_of(self._oldest))
        self._oldest += 1

    def check(self) -> None:
        """Look whether another driver took over; for a driver with nothing to write.

        Raises:
            LedgerTakenError: so it is.
        """
        with self._writing, ledger_errors(self._location, "looked at"):
            name = name_of(self._known_next())
            try:
                self._place.read(name)
            except FileNotFoundError:
                return
            self._next = None
            raise taken_over(self._location)

    def close(self) -> None:
        """Let another driver in. What was appended stays."""
        with self._writing:
            self._next = None
            self._unlock()

    def _unlock(self) -> None:
        self._place.unlock()
        if self._load_lock is not None:
            self._load_lock.release()

    # What each load() of a batch acquires.

    def load_of(self, load_id: str) -> Load | None:
        """Return what is known of a `load()`, or None if it was never planned."""
        return self._loads.get(load_id)

    def begin_load(self, load_id: str, start: int) -> Load:
        """Acquire for a `load()` from here on; durable when this returns.

        `start` is the first position that it reads; of one that was begun before, the
        first `start` stays.

        Raises:
            LedgerTakenError: another driver took the ledger over.
            LedgerError: it could not be written.
        """
        return self._enter_load(load_id, start=start, is_complete=False)

    def complete_load(self, load_id: str) -> Load:
        """Acquire nothing more for a `load()`; nothing may be appended after this.

        Raises:
            LedgerTakenError: another driver took the ledger over.
            LedgerError: it could not be written.
        """
        load = self._enter_load(load_id, start=None, is_complete=True)
        self.close()
        return load

    def _enter_load(
        self, load_id: str, *, start: int | None, is_complete: bool
    ) -> Load:
        with self._writing:
            at = self._end
            self._write(
                entries.load(
                    self._driver, load_id, at=at, start=start, is_complete=is_complete
                )
            )
            if start is None:
                self._loads.complete(load_id, at)
                self._next = None
            else:
                self._loads.begin(load_id, start, at)
            load = self._loads.get(load_id)
            assert load is not None, "just noted"
            return load

    # Taking over.

    def _lock(self, patience: float) -> None:
        who = f"process {os.getpid()} on {platform.node()}"
        deadline = time.monotonic() + patience
        while True:
            with ledger_errors(self._location, "locked"):
                other = self._place.lock(who)
            if other is None:
                return
            if time.monotonic() >= deadline:
                raise LedgerTakenError(
                    f"the ledger in {self._location} is in use by {other}; stop that "
                    "query, or give this one a ledgerLocation of its own"
                )
            time.sleep(0.1)

    def _take_over(self, group_id: str) -> Ledger:
        history = read_history(self._place, self._location)
        self._oldest, self._keep = history.oldest, history.keep
        self.identity = known_identity(history, group_id, self._location) or Identity(
            ledger_id=uuid4().hex, group_id=group_id, member_id=member_id_of(None)
        )
        rebuilt = rebuild(history, self._location)
        self._segments, self._loads = rebuilt.segments, rebuilt.loads
        self._end = rebuilt.ledger.end
        self._next = history.entries[-1][0] + 1 if history.entries else 0
        self._write(entries.opened(self._driver, self.identity))
        self._loads.interrupt(self._end)
        return rebuilt.ledger

    # Writing.

    def _known_next(self) -> int:
        if self._next is None:
            raise LedgerError(
                f"the ledger in {self._location} is closed, or failed before; load it"
            )
        return self._next

    def _write(self, data: bytes) -> int:
        number = self._known_next()
        # Whatever goes wrong now, the entry may be there.
        self._next = None
        with ledger_errors(self._location, "written"):
            self._create(name_of(number), data)
        self._next = number + 1
        return number

    def _create(self, name: str, data: bytes) -> None:
        try:
            self._place.create(name, data)
        except FileExistsError as error:
            # An object store's client repeats a request whose answer was lost, and
            # then meets its own file. The driver's id is in every entry.
            if self._place.read(name) != data:
                raise taken_over(self._location) from error
