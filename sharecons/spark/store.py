"""The store of a ledger: numbered entries, each in a file that is created once.

A driver writes each change here before it makes it in its `Ledger`. The numbers exclude
a second driver: if two drivers create the same entry, the storage rejects the second
one, and that driver must stop. Opening the ledger writes an entry as well. So an older
driver that still runs finds its next number used, and stops.

After a crash
-------------
- before the entry was created: its offsets were not accepted, and the group delivers
  them again.
- after the entry was created, before its offsets were accepted: they are delivered
  again, found in the ledger, and only accepted.
- between the snapshot of a trim and the removal of older entries: opening the ledger
  skips these entries, and the next driver removes them.
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
    WRITTEN,
    LedgerState,
    as_ledger_errors,
    check_identity,
    deleted_error,
    entry_name,
    finished_name,
    finished_names,
    read_history,
    rebuild,
    taken_over_error,
)
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.loads import Load, Loads
from sharecons.spark.storage import Storage, open_storage

__all__ = ["Store"]

_log = get_logger(__name__)

READ_ATTEMPTS: Final = 5
"""Attempts to read a ledger while a driver removes entries."""

REMOVALS_PER_CALL: Final = 16
"""Entries that one call of `remove_old_entries` removes: on an object store each takes
a request, and the caller can only stop between two calls."""


@final
class Store:
    """Stores the ledger of one query.

    The methods block, and can be called from any thread. A `Ledger` is not thread-safe;
    its users lock it themselves.

    Attributes:
        identity: the identity of the ledger; set by `open`.
        finished: up to where batches had finished when `open` was called; 0 if unknown.
    """

    identity: Identity
    finished: int = 0

    def __init__(
        self,
        location: str | Storage,
        options: Mapping[str, Any] | None = None,
        lock: LoadLock | None = None,
    ) -> None:
        """Create a store; nothing is read or written yet.

        Args:
            location: a directory, a URL, or a storage.
            options: arguments of the fsspec file system.
            lock: held from `open` to `close`, also on a storage that has locks.

        Raises:
            ConfigurationError: the location cannot store a ledger.
        """
        self._location = str(location)
        self._storage = (
            open_storage(location, options) if isinstance(location, str) else location
        )
        self._driver_id = uuid4().hex
        self._write_lock = Lock()
        # None before `open`, and after an error.
        self._next_number: int | None = None
        self._end = 0
        # The oldest entry in the storage; only `remove_old_entries` changes it.
        self._oldest_number = 0
        # Entries before this number are no longer needed.
        self._first_kept = 0
        # The numbers of the kept segments, and the positions at their ends.
        self._segments: deque[tuple[int, int]] = deque()
        self._loads = Loads()
        self._load_lock = lock

    @property
    def member_id(self) -> str:
        """The member id with which each driver of this ledger joins the group.

        A restarted driver gets its partitions immediately, instead of after the timeout
        of the old driver's session.
        """
        return self.identity.member_id

    def open(self, group_id: str, *, lock_timeout: float = 0.0) -> Ledger:
        """Take the ledger over, or create it, and read it.

        On a storage with locks this waits for another driver to close the ledger. On
        others the older driver fails at its next write.

        Args:
            lock_timeout: seconds to wait for the lock.

        Raises:
            LedgerTakenError: another driver uses the ledger.
            LedgerMismatchError: it is the ledger of another group.
            LedgerLostError: entries are damaged or missing.
            LedgerError: the storage cannot be read or written.
        """
        check_group_id(group_id)
        with self._write_lock:
            try:
                if self._load_lock is not None:
                    self._load_lock.acquire()
                self._lock_storage(lock_timeout)
                return self._take_over(group_id)
            except BaseException:
                self._unlock()
                raise

    def read(self, group_id: str) -> LedgerState:
        """Read the current ledger, without taking it over; raise errors as `open`."""
        check_group_id(group_id)
        for attempt in range(READ_ATTEMPTS):
            with suppress(LedgerTakenError, LedgerLostError):
                return self._read(group_id)
            _log.debug("reading the ledger again", attempt=attempt)
        return self._read(group_id)

    def _read(self, group_id: str) -> LedgerState:
        history = read_history(self._storage, self._location)
        check_identity(history, group_id, self._location)
        return rebuild(history, self._location)

    def append(self, segment: Sequence[AcquiredRange]) -> None:
        """Write a segment; it is durable when this returns.

        After an error it is unknown whether the entry was created, so the store must be
        opened again.

        Raises:
            LedgerTakenError: another driver has taken the ledger over.
            LedgerError: the entry could not be written.
        """
        if not segment:
            return
        with self._write_lock:
            number = self._write(
                entries.encode_acquired(self._driver_id, self._end, segment)
            )
            self._end += sum(each.size for each in segment)
            self._segments.append((number, self._end))

    def trim(self, ledger: Ledger) -> None:
        """Write a snapshot, unless no whole segment is trimmed.

        The segments before it are no longer needed, and `remove_old_entries` removes
        them.

        Raises:
            LedgerTakenError: another driver has taken the ledger over.
            LedgerError: the entry could not be written.
        """
        with self._write_lock:
            kept = [one for one in self._segments if one[1] > ledger.begin]
            if len(kept) == len(self._segments):
                return
            first_kept = kept[0][0] if kept else self._require_next_number()
            self._write(
                entries.encode_trimmed(
                    self._driver_id,
                    self.identity,
                    begin=ledger.begin,
                    first_kept=first_kept,
                    topics=ledger.topics,
                    redeliverable=ledger.redeliverable,
                    loads=self._loads,
                )
            )
            self._segments = deque(kept)
            self._first_kept = first_kept

    def remove_old_entries(self) -> bool:
        """Remove some entries that are no longer needed; return whether more are.

        This can run concurrently with all other methods. Opening a ledger skips such
        entries, so they need not be removed. `trim` does not do this because Spark
        waits for it.
        """
        end = min(self._first_kept, self._oldest_number + REMOVALS_PER_CALL)
        try:
            # The oldest first, so that the numbers of the rest have no gap.
            while self._oldest_number < end:
                self._remove_oldest()
        except Exception as error:  # noqa: BLE001 - each file system has its own
            _log.warning(
                "old entries of the ledger could not be removed; trying again after "
                "the next commit",
                location=self._location,
                number=self._oldest_number,
                error=str(error),
            )
            return False
        return self._oldest_number < self._first_kept

    def _remove_oldest(self) -> None:
        self._storage.remove(entry_name(self._oldest_number))
        self._oldest_number += 1

    def mark_finished(self, position: int) -> None:
        """Write that the batches up to a position have finished, if the store is open.

        Readers of the backlog use this, and the next driver. All other methods can run
        at the same time.

        Raises:
            LedgerError: the storage cannot be written.
        """
        with self._write_lock:  # a write resets the number until it is done
            if self._next_number is None:
                return
        own = finished_name(position)
        with as_ledger_errors(self._location, WRITTEN):
            # First, as listing would create a directory that was deleted.
            with suppress(FileExistsError):
                self._storage.create(own, b"\n")
            for name in finished_names(self._storage.list_names()):
                if name != own:
                    self._storage.remove(name)

    def check_ownership(self) -> None:
        """Check that the ledger exists, and that no other driver has taken it over.

        Raises:
            LedgerTakenError: another driver has.
            LedgerLostError: the ledger was deleted.
            LedgerError: the storage cannot be read.
        """
        with self._write_lock, as_ledger_errors(self._location, "checked"):
            number = self._require_next_number()
            # In this order: a newer driver writes its entry before it removes others.
            newest, other = self._exists(number - 1), self._exists(number)
            if other or not newest:
                self._next_number = None
                error = taken_over_error if other else deleted_error
                raise error(self._location)

    def _exists(self, number: int) -> bool:
        with suppress(FileNotFoundError):
            self._storage.read(entry_name(number))
            return True
        return False

    def close(self) -> None:
        """Unlock the ledger; nothing can be written until `open`. Can be repeated."""
        with self._write_lock:
            self._next_number = None
            self._unlock()

    def _unlock(self) -> None:
        self._storage.unlock()
        if self._load_lock is not None:
            self._load_lock.release()

    # The load()s of batches.

    def get_load(self, load_id: str) -> Load | None:
        """Return the positions of a `load()`, or None if it was never planned."""
        return self._loads.get(load_id)

    def begin_load(self, load_id: str, start: int) -> Load:
        """Write that a `load()` acquires the following segments.

        Args:
            start: the first position that the load reads; ignored if it was begun
                before.

        Raises:
            LedgerTakenError: another driver has taken the ledger over.
            LedgerError: the entry could not be written.
        """
        return self._write_load(load_id, start=start, is_complete=False)

    def complete_load(self, load_id: str) -> Load:
        """Write that a `load()` is complete, and close the store; raise as others."""
        load = self._write_load(load_id, start=None, is_complete=True)
        self.close()
        return load

    def _write_load(
        self, load_id: str, *, start: int | None, is_complete: bool
    ) -> Load:
        with self._write_lock:
            position = self._end
            self._write(
                entries.encode_load(
                    self._driver_id,
                    load_id,
                    position=position,
                    start=start,
                    is_complete=is_complete,
                )
            )
            if start is None:
                self._loads.complete(load_id, position)
                self._next_number = None
            else:
                self._loads.begin(load_id, start, position)
            load = self._loads.get(load_id)
            assert load is not None, "just noted"
            return load

    # Taking over.

    def _lock_storage(self, timeout: float) -> None:
        owner = f"process {os.getpid()} on {platform.node()}"
        deadline = time.monotonic() + timeout
        while True:
            with as_ledger_errors(self._location, "locked"):
                other = self._storage.lock(owner)
            if other is None:
                return
            if time.monotonic() >= deadline:
                raise LedgerTakenError(
                    f"the ledger in {self._location} is in use by {other}; stop that "
                    "query, or give this one a ledgerLocation of its own"
                )
            time.sleep(0.1)

    def _take_over(self, group_id: str) -> Ledger:
        history = read_history(self._storage, self._location)
        self._oldest_number, self._first_kept = history.oldest, history.first_kept
        self.identity = check_identity(history, group_id, self._location) or Identity(
            ledger_id=uuid4().hex, group_id=group_id, member_id=member_id_of(None)
        )
        rebuilt = rebuild(history, self._location)
        self._segments, self._loads = rebuilt.segments, rebuilt.loads
        self._end = rebuilt.ledger.end
        self.finished = history.finished or 0
        self._next_number = history.entries[-1][0] + 1 if history.entries else 0
        self._write(entries.encode_opened(self._driver_id, self.identity), "opened")
        self._loads.interrupt(self._end)
        return rebuilt.ledger

    # Writing.

    def _require_next_number(self) -> int:
        if self._next_number is None:
            raise LedgerError(
                f"the ledger in {self._location} is closed, or an earlier write "
                "failed; open it again"
            )
        return self._next_number

    def _write(self, data: bytes, action: str = WRITTEN) -> int:
        number = self._require_next_number()
        # After any error it is unknown whether the entry was created.
        self._next_number = None
        with as_ledger_errors(self._location, action):
            self._create(entry_name(number), data)
        self._next_number = number + 1
        return number

    def _create(self, name: str, data: bytes) -> None:
        try:
            self._storage.create(name, data)
        except FileExistsError as error:
            # The client of an object store repeats a request whose response was lost,
            # and can find its own file. Each entry contains its driver's id.
            if self._storage.read(name) != data:
                raise taken_over_error(self._location) from error
