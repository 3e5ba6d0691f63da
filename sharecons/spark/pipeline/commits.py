"""The commit files: which batches were staged completely, and what publishes them.

A batch is staged first: all of its files are written to a directory that readers do not
use. Then its commit file is created atomically. Without this file the batch does not
exist, and a replay stages it again. With it the batch has its result, whatever changes
afterwards: a replay only publishes the rest of it.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from sharecons.spark.pipeline.errors import CommitError
from sharecons.spark.pipeline.ledger_range import LedgerRange
from sharecons.spark.pipeline.stats import BatchStats
from sharecons.spark.storage import Storage

__all__ = ["KEPT_COMMITS", "Commit", "CommitLog"]

KEPT_COMMITS: Final = 100
"""Commit files that are kept, for drivers that were replaced and still write an old
batch. Spark keeps the same number of batches in a checkpoint."""

_INVALID: Final = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
"""Raised for bytes that are no commit."""

SUFFIX: Final = ".json"
ID_SUFFIX: Final = ".id"

READERS: Final = 16
"""Files that are read at the same time: an object store takes 50 ms for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A staged batch.

    Attributes:
        batch: the id of the batch.
        number: the number of the batch in its query.
        query: the id of the query.
        staging: the directory of the staged files.
        files: the staged files and their final names, by table.
        stats: the statistics of the batch.
        removed: files that the batch replaces.
        replaced: batches whose records in quarantine the batch replaces.
        range: the positions of its records; None for a requeue, and in a file of an
            earlier version.
    """

    batch: str
    number: int
    query: str
    staging: str
    files: Mapping[str, Mapping[str, str]]
    stats: BatchStats
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    range: LedgerRange | None = None

    def encode(self) -> bytes:
        content = asdict(self) | {"stats": self.stats.as_json()}
        return json.dumps(content, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Commit":
        found: dict[str, Any] = json.loads(data)
        found["stats"] = BatchStats.from_json(found["stats"])
        for name in ("removed", "replaced"):
            found[name] = tuple(found[name])
        if found.get("range"):
            found["range"] = LedgerRange(**found["range"])
        return cls(**found)


class CommitLog:
    """The commit files of a pipeline's directory.

    Args:
        location: the directory of the files, for errors.
    """

    def __init__(self, storage: Storage, location: str = "commits") -> None:
        self._storage = storage
        self.location = location

    def find(self, batch: str) -> Commit | None:
        """Return the commit of a batch; None if the batch was not staged completely.

        Raises:
            CommitError: the file is damaged.
        """
        if f"{batch}{SUFFIX}" not in self._storage.list_names():
            return None
        return self._read(batch)

    def _read(self, batch: str) -> Commit:
        data = self._storage.read(f"{batch}{SUFFIX}")
        try:
            return Commit.decode(data)
        except _INVALID as error:
            raise CommitError(
                f"the commit file {self.location}/{batch}{SUFFIX} is damaged "
                f"({len(data)} bytes): it is unknown what of the batch is visible; "
                "restore it from a backup; or delete what rows, quarantine and runs "
                f"have of the batch {batch}, and then this file: if the checkpoint "
                "has not committed the batch, the next run writes it again"
            ) from error

    def list_batches(self) -> list[str]:
        names = self._storage.list_names()
        return [n.removesuffix(SUFFIX) for n in names if n.endswith(SUFFIX)]

    def read_all(self) -> list[Commit]:
        """Return all commits.

        Raises:
            CommitError: a file is damaged.
        """
        with ThreadPoolExecutor(READERS) as pool:
            return list(pool.map(self._read, self.list_batches()))

    def add(self, commit: Commit) -> Commit:
        """Create the commit file of a batch.

        Returns:
            This commit, or the commit of another driver that was faster.
        """
        with suppress(FileExistsError):
            self._storage.create(f"{commit.batch}{SUFFIX}", commit.encode())
            return commit
        return self._read(commit.batch)

    def remove(self, batch: str) -> None:
        self._storage.remove(f"{batch}{SUFFIX}")

    # The id, by which the layout of the rows knows this directory after a move.

    def find_id(self) -> str | None:
        names = self._storage.list_names()
        ids = [n.removesuffix(ID_SUFFIX) for n in names if n.endswith(ID_SUFFIX)]
        return min(ids, default=None)

    def create_id(self, commits_id: str) -> None:
        with suppress(FileExistsError):
            self._storage.create(f"{commits_id}{ID_SUFFIX}", b"\n")
