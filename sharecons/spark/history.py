"""Reading a ledger: its entries, from the newest back to the oldest of use.

Nothing is written here, so any process may read a ledger that a driver is at work on.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sharecons.errors import Error
from sharecons.spark import entries
from sharecons.spark.entries import Entry, Identity
from sharecons.spark.errors import (
    LedgerError,
    LedgerLostError,
    LedgerMismatchError,
    LedgerTakenError,
)
from sharecons.spark.ledger import Ledger
from sharecons.spark.loads import Loads
from sharecons.spark.storage import Storage

__all__ = [
    "History",
    "Rebuilt",
    "known_identity",
    "ledger_errors",
    "name_of",
    "read_history",
    "rebuild",
    "taken_over",
]

READERS: Final = 16
READ_AHEAD: Final = 64
"""Entries that are read before it is known whether they are of use; a query that
commits has fewer."""

# As Kafka names the segments of a log, so that names sort as numbers do.
_NAME: Final = "{:020d}.jsonl"
_NUMBER: Final = re.compile(r"(\d{20})\.jsonl")


@dataclass(frozen=True, slots=True)
class History:
    """The entries of use, by number.

    Attributes:
        oldest: the number of the oldest entry that is there.
        keep: all entries before this number are of no use.
    """

    entries: Sequence[tuple[int, Entry]]
    oldest: int
    keep: int


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the entries amount to.

    Attributes:
        segments: the numbers of segments, and the positions where they end.
    """

    ledger: Ledger
    segments: deque[tuple[int, int]]
    loads: Loads


def name_of(number: int) -> str:
    return _NAME.format(number)


def read_history(place: Storage, location: str) -> History:
    """Read what is of use, from the newest entry back to the last one kept.

    Raises:
        LedgerTakenError: an entry was removed meanwhile, so another driver is at work.
        LedgerLostError: entries are damaged, or missing.
        LedgerError: the place cannot be read.
    """
    with ledger_errors(location, "listed"):
        found = sorted(_numbers(place.names()))
    history: list[tuple[int, Entry]] = []
    keep = 0
    snapshot = False
    for number, entry in _newest_first(place, location, found):
        if number < keep:
            break
        if entry is None:
            # It was listed a moment ago.
            raise taken_over(location)
        if entry.kind == "trimmed" and not snapshot:
            keep, snapshot = entry.head["keep"], True
        history.append((number, entry))
    history.reverse()
    _check_whole([number for number, _ in history], keep, location)
    return History(history, found[0] if found else 0, keep)


def _numbers(names: Sequence[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _NUMBER.fullmatch(name))]


def _check_whole(numbers: Sequence[int], first: int, location: str) -> None:
    if numbers and numbers != list(range(first, numbers[-1] + 1)):
        there = set(numbers)
        lost = next(n for n in range(first, numbers[-1]) if n not in there)
        raise LedgerLostError(
            f"the ledger in {location} misses its entry {name_of(lost)}:"
            " what it listed is accepted and was perhaps not read; restore it, or "
            "begin a new ledger and checkpoint"
        )


def _newest_first(
    place: Storage, location: str, numbers: Sequence[int]
) -> Iterator[tuple[int, Entry | None]]:
    """Read entries, several at a time: an object store takes 50 ms for each."""

    def read(number: int) -> Entry | None:
        with ledger_errors(location, "read"):
            try:
                data = place.read(name_of(number))
            except FileNotFoundError:
                return None
        return entries.parse(data, f"{location}/{name_of(number)}")

    with ThreadPoolExecutor(READERS) as pool:
        for last in range(len(numbers), 0, -READ_AHEAD):
            some = numbers[max(0, last - READ_AHEAD) : last][::-1]
            yield from zip(some, pool.map(read, some), strict=True)


def known_identity(history: History, group_id: str, location: str) -> Identity | None:
    """Return whose ledger it is, or None for a new one.

    Raises:
        LedgerMismatchError: it is the ledger of another group.
    """
    known = [entry.identity for _, entry in history.entries if entry.identity]
    if not known:
        return None
    if known[-1].group_id != group_id:
        raise LedgerMismatchError(
            f"the ledger in {location} belongs to the group "
            f"{known[-1].group_id}, not to {group_id}; give each group a "
            "ledgerLocation of its own"
        )
    return known[-1]


def rebuild(history: History, where: str) -> Rebuilt:
    """Make the ledger and its loads of the entries.

    Raises:
        LedgerLostError: they do not hang together.
    """
    rebuilt = Rebuilt(*_last_snapshot(history.entries))
    ledger = rebuilt.ledger
    snapshots = [n for n, entry in history.entries if entry.kind == "trimmed"]
    noted = snapshots[-1] if snapshots else -1
    for number, entry in history.entries:
        if entry.head.get("at", ledger.end) != ledger.end:
            raise LedgerLostError(
                f"the ledger in {where} does not hang together at entry {number}; "
                "restore it, or begin a new ledger and checkpoint"
            )
        if entry.kind == "trimmed":
            # Ids that were adopted since the segments before it were written.
            ledger.agree(entry.topics, adopt=True)
        elif entry.kind == "taken":
            ledger.append(entry.segment)
            rebuilt.segments.append((number, ledger.end))
        elif number > noted:
            _note_load(rebuilt.loads, entry, ledger.end)
    if snapshots:
        ledger.trim(dict(history.entries)[noted].head["begin"])
    return rebuilt


def _last_snapshot(
    history: Sequence[tuple[int, Entry]],
) -> tuple[Ledger, deque[tuple[int, int]], Loads]:
    snapshots = [entry for _, entry in history if entry.kind == "trimmed"]
    if not snapshots:
        return Ledger(), deque(), Loads()
    last = snapshots[-1]
    begin = last.head["begin"]
    kept = next((one.head["at"] for _, one in history if one.kind == "taken"), begin)
    ledger = Ledger.restored(min(begin, kept), last.topics, last.remembered)
    return ledger, deque(), last.loads


def _note_load(loads: Loads, entry: Entry, at: int) -> None:
    if entry.kind == "opened":
        loads.interrupt(at)
    elif entry.head["is_complete"]:
        loads.complete(entry.head["load"], at)
    else:
        loads.begin(entry.head["load"], entry.head["start"], at)


def taken_over(location: str) -> LedgerTakenError:
    return LedgerTakenError(
        f"another driver took over the ledger in {location}; this query "
        "stops: give each query a ledgerLocation of its own"
    )


@contextmanager
def ledger_errors(location: str, done: str) -> Iterator[None]:
    """Make errors of file systems ours; each has classes of its own."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise LedgerError(
            f"the ledger in {location} could not be {done}: "
            f"{type(error).__name__}: {error}; see to it and start the query again "
            "(nothing is accepted that is not in the ledger)"
        ) from error
