"""Reads the backlog of a query from its ledger, without Spark, while the query runs.

The lag of a group excludes what is in a ledger: its records are accepted. This module
counts the offsets that no batch has finished. A count can be too high for some seconds,
and never too low: a driver writes an entry before it accepts its records, and up to
where batches have finished after that.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, final

from sharecons._record import TopicPartition
from sharecons.spark.errors import LedgerError, LedgerLostError, LedgerTakenError
from sharecons.spark.history import History, read_history, rebuild
from sharecons.spark.storage import ReadableStorage, Storage, open_storage

__all__ = ["BacklogReader", "LedgerBacklog"]

READ_ATTEMPTS: Final = 5
"""Attempts to read a ledger while a driver removes entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerBacklog:
    """The offsets of a ledger that no batch has finished.

    Attributes:
        group_id: the share group that delivered the records.
        offsets: the number of offsets, by partition; partitions without any are left
            out.
    """

    group_id: str
    offsets: Mapping[TopicPartition, int]


@final
class BacklogReader:
    """Reads the backlog of one ledger again and again, and its new entries only.

    Nothing is written. The methods block, and can be called from any thread, one at a
    time.

    Args:
        location: the `ledgerLocation` of the query, or a storage.

    Raises:
        ConfigurationError: the location cannot store a ledger, or a package for its
            file system is missing.
    """

    def __init__(self, location: str | Storage) -> None:
        self._location = str(location)
        if isinstance(location, str):
            location = open_storage(location, creates=False)
        self._storage = _Cache(location)

    def read(self) -> LedgerBacklog:
        """Read the current backlog.

        Raises:
            LedgerError: there is no ledger, or it cannot be read.
            LedgerLostError: entries are damaged or missing.
        """
        for _ in range(READ_ATTEMPTS):
            with suppress(LedgerTakenError, LedgerLostError):
                return self._read()
        return self._read()

    def _read(self) -> LedgerBacklog:
        history = read_history(self._storage, self._location)
        owners = [entry.identity for _, entry in history.entries if entry.identity]
        if not owners:
            raise LedgerError(
                f"there is no ledger in {self._location}; name the ledgerLocation of a "
                "query that has run"
            )
        return LedgerBacklog(
            group_id=owners[-1].group_id,
            offsets=_count_backlog(history, self._location),
        )


def _count_backlog(history: History, location: str) -> Counter[TopicPartition]:
    state = rebuild(history, location)
    ledger, finished = state.ledger, history.finished
    if finished is None:
        # Spark does not report the end of a `spark.read`.
        finished = ledger.end if len(state.loads) else ledger.begin
    begin = min(max(ledger.begin, finished), ledger.end)
    counts: Counter[TopicPartition] = Counter()
    for each in ledger.ranges_between(begin, ledger.end):
        counts[TopicPartition(each.topic, each.partition)] += each.size
    return counts


class _Cache:
    """Keeps the files of the last list of names, as files do not change."""

    def __init__(self, storage: ReadableStorage) -> None:
        self._storage = storage
        self._files: dict[str, bytes] = {}

    def list_names(self) -> list[str]:
        names = self._storage.list_names()
        self._files = {n: self._files[n] for n in names if n in self._files}
        return names

    def read(self, name: str) -> bytes:
        data = self._files.get(name)
        if data is None:
            data = self._files[name] = self._storage.read(name)
        return data
