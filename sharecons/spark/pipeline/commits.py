"""The commit files: which batches were staged completely, and what publishes them.

A batch is staged first: all of its files are written to a directory that readers do not
use. Then its commit file is created atomically. Without this file the batch does not
exist, and a replay stages it again. With it the batch has its result, whatever changes
afterwards: a replay only publishes the rest of it.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from sharecons.spark.pipeline.stats import BatchStats
from sharecons.spark.storage import Storage

__all__ = ["KEPT_COMMITS", "Commit", "CommitLog"]

KEPT_COMMITS: Final = 100
"""Commit files that are kept, for drivers that were replaced and still write an old
batch. Spark keeps the same number of batches in a checkpoint."""

SUFFIX: Final = ".json"


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
    """

    batch: str
    number: int
    query: str
    staging: str
    files: Mapping[str, Mapping[str, str]]
    stats: BatchStats
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    def encode(self) -> bytes:
        content = asdict(self) | {"stats": self.stats.as_json()}
        return json.dumps(content, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Commit":
        found: dict[str, Any] = json.loads(data)
        found["stats"] = BatchStats.from_json(found["stats"])
        for name in ("removed", "replaced"):
            found[name] = tuple(found[name])
        return cls(**found)


class CommitLog:
    """The commit files of a pipeline's directory."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def find(self, batch: str) -> Commit | None:
        """Return the commit of a batch; None if the batch was not staged completely."""
        if f"{batch}{SUFFIX}" not in self._storage.list_names():
            return None
        return Commit.decode(self._storage.read(f"{batch}{SUFFIX}"))

    def list_batches(self) -> list[str]:
        names = self._storage.list_names()
        return [n.removesuffix(SUFFIX) for n in names if n.endswith(SUFFIX)]

    def add(self, commit: Commit) -> Commit:
        """Create the commit file of a batch.

        Returns:
            The commit, or the one of another driver that was faster.
        """
        with suppress(FileExistsError):
            self._storage.create(f"{commit.batch}{SUFFIX}", commit.encode())
            return commit
        return Commit.decode(self._storage.read(f"{commit.batch}{SUFFIX}"))

    def remove(self, batch: str) -> None:
        self._storage.remove(f"{batch}{SUFFIX}")
