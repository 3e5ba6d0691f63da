"""Snapshots: the result of one collection of the exporter."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sharecons.errors import Error
from sharecons.group_state.collector import CollectedGroups
from sharecons.spark.backlog import LedgerBacklog

__all__ = ["Snapshot", "snapshot_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(CollectedGroups):
    """The groups of one collection, and the backlogs of Spark queries.

    Attributes:
        ledgers: the backlogs, by the location of the ledger.
    """

    ledgers: Mapping[str, LedgerBacklog] = field(default_factory=dict)


def snapshot_of(
    read: CollectedGroups,
    backlogs: Mapping[str, LedgerBacklog] | None = None,
    errors: Sequence[Error] = (),
    duration: float = 0.0,
) -> Snapshot:
    """Return a snapshot that ends now; `errors` are of ledgers."""
    counts = Counter(read.error_counts)
    counts["ledgers"] += len(errors)
    texts = (*read.error_messages, *map(str, errors))
    return Snapshot(
        at=time.time(),
        duration=duration,
        groups=read.groups,
        ledgers=backlogs or {},
        error_counts=+counts,
        error_messages=tuple(dict.fromkeys(texts)),
        reached=read.reached,
    )
