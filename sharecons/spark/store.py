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
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, final
from uuid import uuid4

from sharecons.errors import Error
from sharecons.log import get_logger
from sharecons.options import check_group_id, member_id_of
from sharecons.spark import entries
from sharecons.spark.entries import Entry, Identity
from sharecons.spark.errors import (
    LedgerError,
    LedgerLostError,
    LedgerMismatchError,
    LedgerTakenError,
)
from sharecons.spark.ledger import Ledger, Taken
from sharecons.spark.places import Place, place_of

__all__ = ["Store"]

_log = get_logger(__name__)

READERS: Final = 16
READ_AHEAD: Final = 64
"""Entries that are read before it is known whether they are of use; a query that
commits has fewer."""

SWEPT_AT_ONCE: Final = 16
"""Entries that a sweep removes before its caller may end it: on an object store each
takes a request."""

# As Kafka names the segments of a log, so that names sort as numbers do.
_NAME: Final = "{:020d}.jsonl"
_NUMBER: Final = re.compile(r"(\d{20})\.jsonl")


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
        self, location: str | Place, options: Mapping[str, Any] | None = None
    ) -> None:
        """`location` is a directory or a URL, `options` go to its file system.

        Raises:
            ConfigurationError: such a place cannot keep a ledger.
        """
        self._location = str(location)
        self._place = (
            place_of(location, options) if isinstance(location, str) else location
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
            self._lock(patience)
            try:
                return self._take_over(group_id)
            except BaseException:
                self._place.unlock()
                raise

    def append(self, segment: Sequence[Taken]) -> None:
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
        self._place.remove(_NAME.format(self._oldest))
        self._oldest += 1

    def check(self) -> None:
        """Look whether another driver took over; for a driver with nothing to write.

        Raises:
            LedgerTakenError: so it is.
        """
        with self._writing, self._errors("looked at"):
            name = _NAME.format(self._known_next())
            try:
                self._place.read(name)
            except FileNotFoundError:
                return
            self._next = None
            raise self._taken_over()

    def close(self) -> None:
        """Let another driver in. What was appended stays."""
        with self._writing:
            self._next = None
            self._place.unlock()

    # Taking over.

    def _lock(self, patience: float) -> None:
        who = f"process {os.getpid()} on {platform.node()}"
        deadline = time.monotonic() + patience
        while True:
            with self._errors("locked"):
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
        history = self._history()
        self.identity = self._identify(history, group_id)
        ledger, self._segments = _rebuild(history, self._location)
        self._end = ledger.end
        self._next = history[-1][0] + 1 if history else 0
        self._write(entries.opened(self._driver, self.identity))
        return ledger

    def _history(self) -> list[tuple[int, Entry]]:
        """Read what is of use, from the newest entry back to the last one kept."""
        with self._errors("listed"):
            found = sorted(_numbers(self._place.names()))
        self._oldest = found[0] if found else 0
        history: list[tuple[int, Entry]] = []
        keep = 0
        snapshot = False
        for number, entry in self._newest_first(found):
            if number < keep:
                break
            if entry is None:
                # It was listed a moment ago.
                raise self._taken_over()
            if entry.kind == "trimmed" and not snapshot:
                keep, snapshot = entry.head["keep"], True
            history.append((number, entry))
        history.reverse()
        self._keep = keep
        self._check_whole([number for number, _ in history], keep)
        return history

    def _check_whole(self, numbers: Sequence[int], first: int) -> None:
        if numbers and numbers != list(range(first, numbers[-1] + 1)):
            there = set(numbers)
            lost = next(n for n in range(first, numbers[-1]) if n not in there)
            raise LedgerLostError(
                f"the ledger in {self._location} misses its entry {_NAME.format(lost)}:"
                " what it listed is accepted and was perhaps not read; restore it, or "
                "begin a new ledger and checkpoint"
            )

    def _newest_first(
        self, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Entry | None]]:
        """Read entries, several at a time: an object store takes 50 ms for each."""
        with ThreadPoolExecutor(READERS) as pool:
            for last in range(len(numbers), 0, -READ_AHEAD):
                some = numbers[max(0, last - READ_AHEAD) : last][::-1]
                yield from zip(some, pool.map(self._read, some), strict=True)

    def _read(self, number: int) -> Entry | None:
        name = _NAME.format(number)
        with self._errors("read"):
            try:
                data = self._place.read(name)
            except FileNotFoundError:
                return None
        return entries.parse(data, f"{self._location}/{name}")

    def _identify(
        self, history: Sequence[tuple[int, Entry]], group_id: str
    ) -> Identity:
        known = [entry.identity for _, entry in history if entry.identity is not None]
        if not known:
            return Identity(
                ledger_id=uuid4().hex, group_id=group_id, member_id=member_id_of(None)
            )
        if known[-1].group_id != group_id:
            raise LedgerMismatchError(
                f"the ledger in {self._location} belongs to the group "
                f"{known[-1].group_id}, not to {group_id}; give each group a "
                "ledgerLocation of its own"
            )
        return known[-1]

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
        with self._errors("written"):
            self._create(_NAME.format(number), data)
        self._next = number + 1
        return number

    def _create(self, name: str, data: bytes) -> None:
        try:
            self._place.create(name, data)
        except FileExistsError as error:
            # An object store's client repeats a request whose answer was lost, and
            # then meets its own file. The driver's id is in every entry.
            if self._place.read(name) != data:
                raise self._taken_over() from error

    def _taken_over(self) -> LedgerTakenError:
        return LedgerTakenError(
            f"another driver took over the ledger in {self._location}; this query "
            "stops: give each query a ledgerLocation of its own"
        )

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """Make errors of file systems ours; each has classes of its own."""
        try:
            yield
        except Error:
            raise
        except Exception as error:
            raise LedgerError(
                f"the ledger in {self._location} could not be {done}: "
                f"{type(error).__name__}: {error}; see to it and start the query again "
                "(nothing is accepted that is not in the ledger)"
            ) from error


def _numbers(names: Sequence[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _NUMBER.fullmatch(name))]


def _rebuild(
    history: Sequence[tuple[int, Entry]], where: str
) -> tuple[Ledger, deque[tuple[int, int]]]:
    """Make the ledger of its entries, and say where its segments end."""
    snapshots = [entry for _, entry in history if entry.kind == "trimmed"]
    kept = next((one.head["at"] for _, one in history if one.kind == "taken"), None)
    begin = snapshots[-1].head["begin"] if snapshots else 0
    first = begin if kept is None else min(begin, kept)
    ledger = Ledger()
    if snapshots:
        topics, remembered = snapshots[-1].topics, snapshots[-1].remembered
        ledger = Ledger.restored(first, topics, remembered)
    ends: deque[tuple[int, int]] = deque()
    for number, segment in history:
        if segment.kind == "trimmed":
            # Ids that were adopted since the segments before it were written.
            ledger.agree(segment.topics, adopt=True)
        if segment.kind != "taken":
            continue
        if segment.head["at"] != ledger.end:
            raise LedgerLostError(
                f"the ledger in {where} does not hang together at entry {number}; "
                "restore it, or begin a new ledger and checkpoint"
            )
        ledger.append(segment.segment)
        ends.append((number, ledger.end))
    ledger.trim(begin)
    return ledger, ends
