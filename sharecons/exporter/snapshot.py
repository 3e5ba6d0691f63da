"""Snapshots: the result of one collection of the exporter."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sharecons.errors import Error
from sharecons.group_state.collector import CollectedGroups
from sharecons.spark.backlog import LedgerBacklog

__all__ = ["Snapshot", "unreachable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(CollectedGroups):
    """The groups of one collection, and the backlogs of Spark queries.

    Attributes:
        ledgers: the backlogs, by the location of the ledger.
    """

    ledgers: Mapping[str, LedgerBacklog] = field(default_factory=dict)


def unreachable(error: Error) -> Snapshot:
    """Return a snapshot without groups, for a cluster that does not respond."""
    return Snapshot(
        at=time.time(),
        duration=0.0,
        error_counts={"cluster": 1},
        error_messages=(str(error),),
        reached=False,
    )
