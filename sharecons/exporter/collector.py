"""The exporter's collector: all groups of a cluster, and the ledgers of queries."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import final

from sharecons.admin import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.exporter.ledgers import Ledgers
from sharecons.exporter.snapshot import Snapshot, snapshot_of
from sharecons.group_state.collector import GroupCollector
from sharecons.spark.backlog import LedgerBacklog

__all__ = ["Collector"]


@final
class Collector:
    """Reads snapshots of the groups whose ids match one of the patterns.

    Args:
        admin: sends the requests.
        patterns: like file names: `billing-*`. None means all groups.
        limit: seconds for one collection of groups.
        ledgers: the ledgers of Spark queries to read as well.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        patterns: Iterable[str] = (),
        limit: float = 30.0,
        *,
        ledgers: Ledgers | None = None,
    ) -> None:
        self._groups = GroupCollector(admin, patterns, limit)
        self._ledgers = ledgers or Ledgers()

    async def collect(self) -> Snapshot:
        """Read all groups once. Errors are in the snapshot; nothing is raised.

        Can be cancelled at any time.
        """
        began = time.monotonic()
        read = await self._groups.collect()
        backlogs: Mapping[str, LedgerBacklog] = {}
        others: Sequence[Error] = ()
        if read.reached:
            # After the lag: a record that a query acquires meanwhile counts twice.
            # In the other order it would count nowhere.
            backlogs, others = await self._ledgers.read()
        return snapshot_of(read, backlogs, others, time.monotonic() - began)

    def unreachable(self, error: Error) -> Snapshot:
        """Return a snapshot without groups, for a cluster that does not respond."""
        return snapshot_of(self._groups.unreachable(error))
