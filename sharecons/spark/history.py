"""Reads the entries of a ledger, from the newest to the oldest that is needed.

Nothing is written here, so any process can read a ledger while a driver uses it.
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
from sharecons.spark.storage import ReadableStorage

__all__ = [
    "WRITTEN",
    "History",
    "LedgerState",
    "as_ledger_errors",
    "check_identity",
    "deleted_error",
    "entry_name",
    "finished_name",
    "finished_names",
    "read_history",
    "rebuild",
    "taken_over_error",
]

READERS: Final = 16
READ_AHEAD: Final = 64
"""Entries to read in parallel, before it is known which ones are needed. A query that
commits has fewer."""

# Zero-padded like the segments of a Kafka log, so that names sort like numbers.
_NAME: Final = "{:020d}.jsonl"
_NUMBER: Final = re.compile(r"(\d{20})\.jsonl")

WRITTEN: Final = "written"
"""The action of `as_ledger_errors` after a ledger was opened."""

_INVALID: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Raised for JSON that is no entry."""

_FINISHED_NAME: Final = "{:020d}.finished"
_FINISHED: Final = re.compile(r"(\d{20})\.finished")


@dataclass(frozen=True, slots=True)
class History:
    """The needed entries of a ledger, by number.

    Attributes:
        oldest: the number of the oldest entry in the storage.
        first_kept: the number of the first entry that is needed.
        finished: the position up to which batches have finished; None if unknown.
    """

    entries: Sequence[tuple[int, Entry]]
    oldest: int
    first_kept: int
    finished: int | None


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The ledger that the entries describe.

    Attributes:
        segments: the numbers of `acquired` entries, and the positions at their ends.
    """

    ledger: Ledger
    segments: deque[tuple[int, int]]
    loads: Loads


def entry_name(number: int) -> str:
    return _NAME.format(number)


def finished_name(position: int) -> str:
    """Return the name of an empty file: the batches up to a position have finished.

    Spark commits a batch when it plans the next one, so that an idle query has not
    committed its last batch.
    """
    return _FINISHED_NAME.format(position)


def finished_names(names: Sequence[str]) -> dict[str, int]:
    """Return the names that `finished_name` has made, and their positions."""
    found = ((name, _FINISHED.fullmatch(name)) for name in names)
    return {name: int(match[1]) for name, match in found if match}


def read_history(storage: ReadableStorage, location: str) -> History:
    """Read the entries that are needed, starting with the newest.

    Raises:
        LedgerTakenError: another driver has removed an entry in the meantime.
        LedgerLostError: entries are damaged or missing.
        LedgerError: the storage cannot be read.
    """
    with _as_invalid_entries(location):
        return _read_history(storage, location)


def _read_history(storage: ReadableStorage, location: str) -> History:
    with as_ledger_errors(location, "listed"):
        names = storage.list_names()
    numbers = sorted(_entry_numbers(names))
    # A driver that was killed between two calls leaves two of these.
    finished = min(finished_names(names).values(), default=None)
    numbered_entries: list[tuple[int, Entry]] = []
    first_kept = 0
    has_snapshot = False
    for number, entry in _read_newest_first(storage, location, numbers):
        if number < first_kept:
            break
        if entry is None:
            # It existed when the names were listed.
            raise taken_over_error(location)
        if entry.kind == "trimmed" and not has_snapshot:
            first_kept, has_snapshot = entry.header["first_kept"], True
        numbered_entries.append((number, entry))
    numbered_entries.reverse()
    _check_complete([number for number, _ in numbered_entries], first_kept, location)
    oldest = numbers[0] if numbers else 0
    return History(numbered_entries, oldest, first_kept, finished)


def _entry_numbers(names: Sequence[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _NUMBER.fullmatch(name))]


def _check_complete(numbers: Sequence[int], first: int, location: str) -> None:
    if numbers and numbers != list(range(first, numbers[-1] + 1)):
        present = set(numbers)
        lost = next(n for n in range(first, numbers[-1]) if n not in present)
        raise LedgerLostError(
            f"the entry {entry_name(lost)} of the ledger in {location} is missing: "
            "its offsets are accepted, and might not have been read; restore it, or "
            "start with a new ledger and checkpoint"
        )


def _read_newest_first(
    storage: ReadableStorage, location: str, numbers: Sequence[int]
) -> Iterator[tuple[int, Entry | None]]:
    """Yield the entries, None for missing ones, reading several at a time.

    An object store takes 50 ms for each.
    """

    def read(number: int) -> Entry | None:
        with as_ledger_errors(location, "read"):
            try:
                data = storage.read(entry_name(number))
            except FileNotFoundError:
                return None
        return entries.parse_entry(data, f"{location}/{entry_name(number)}")

    with ThreadPoolExecutor(READERS) as pool:
        for last in range(len(numbers), 0, -READ_AHEAD):
            numbers_ahead = numbers[max(0, last - READ_AHEAD) : last][::-1]
            yield from zip(numbers_ahead, pool.map(read, numbers_ahead), strict=True)


def check_identity(history: History, group_id: str, location: str) -> Identity | None:
    """Return the identity of the ledger, or None if it is new.

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


def rebuild(history: History, location: str) -> LedgerState:
    """Return the ledger and the loads that the entries describe.

    Raises:
        LedgerLostError: the positions of the entries are not contiguous, or entries are
            damaged.
    """
    with _as_invalid_entries(location):
        return _rebuild(history, location)


def _rebuild(history: History, location: str) -> LedgerState:
    state = LedgerState(*_last_snapshot(history.entries))
    ledger = state.ledger
    snapshots = [n for n, entry in history.entries if entry.kind == "trimmed"]
    last_snapshot = snapshots[-1] if snapshots else -1
    for number, entry in history.entries:
        if entry.header.get("position", ledger.end) != ledger.end:
            raise LedgerLostError(
                f"entry {number} of the ledger in {location} does not continue the "
                "entry before it; restore the ledger, or start with a new ledger and "
                "checkpoint"
            )
        if entry.kind == "trimmed":
            # Topics might have been recreated after the segments before it.
            ledger.check_topics(entry.topics, allow_recreated=True)
        elif entry.kind == "acquired":
            ledger.append(entry.segment)
            state.segments.append((number, ledger.end))
        elif number > last_snapshot:
            _apply_load(state.loads, entry, ledger.end)
    if snapshots:
        ledger.trim(dict(history.entries)[last_snapshot].header["begin"])
    return state


def _last_snapshot(
    history: Sequence[tuple[int, Entry]],
) -> tuple[Ledger, deque[tuple[int, int]], Loads]:
    snapshots = [entry for _, entry in history if entry.kind == "trimmed"]
    if not snapshots:
        return Ledger(), deque(), Loads()
    last = snapshots[-1]
    begin = last.header["begin"]
    kept = next(
        (one.header["position"] for _, one in history if one.kind == "acquired"), begin
    )
    ledger = Ledger.from_snapshot(min(begin, kept), last.topics, last.redeliverable)
    return ledger, deque(), last.loads


def _apply_load(loads: Loads, entry: Entry, position: int) -> None:
    if entry.kind == "opened":
        loads.interrupt(position)
    elif entry.header["is_complete"]:
        loads.complete(entry.header["load"], position)
    else:
        loads.begin(entry.header["load"], entry.header["start"], position)


def taken_over_error(location: str) -> LedgerTakenError:
    return LedgerTakenError(
        f"another driver took over the ledger in {location}, and this query stops; "
        "give each query a ledgerLocation of its own"
    )


def deleted_error(location: str) -> LedgerLostError:
    return LedgerLostError(
        f"the ledger in {location} was deleted while this query used it. The group has "
        "accepted its records, and does not deliver them again. This query acquires "
        "nothing more, and processes the records that it has in memory. If it is "
        "stopped before, or a batch fails, the records that are in no batch are lost; "
        "the log has their offsets. Then start with a new ledgerLocation and checkpoint"
    )


@contextmanager
def _as_invalid_entries(location: str) -> Iterator[None]:
    """Raise errors of invalid entries as LedgerLostError."""
    try:
        yield
    except _INVALID as error:
        raise LedgerLostError(
            f"the ledger in {location} has an entry whose checksum is correct, and "
            f"whose content is not ({type(error).__name__}: {error}); restore it from "
            "a copy, or start with a new ledger and checkpoint"
        ) from error


@contextmanager
def as_ledger_errors(location: str, action: str) -> Iterator[None]:
    """Raise errors of the storage, whose classes differ, as LedgerError."""
    try:
        yield
    except Error:
        raise
    except FileNotFoundError as error:
        if action != WRITTEN:
            raise _storage_error(location, action, error) from error
        # The directory existed when the ledger was opened.
        raise deleted_error(location) from error
    except Exception as error:
        raise _storage_error(location, action, error) from error


def _storage_error(location: str, action: str, error: Exception) -> LedgerError:
    return LedgerError(
        f"the ledger in {location} could not be {action}: "
        f"{type(error).__name__}: {error}; correct this and start the query again "
        "(no records are lost: only offsets in the ledger are accepted)"
    )
