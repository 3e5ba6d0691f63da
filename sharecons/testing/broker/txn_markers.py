"""Applies the end of transactions to logs and groups."""

from collections.abc import Iterable

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.transactions import Ending

__all__ = ["abort_late", "settle"]


def abort_late(cluster: Cluster, now: float, now_ms: int) -> None:
    """Abort the transactions that have timed out."""
    settle(cluster, cluster.transactions.advance(now), now_ms)


def settle(cluster: Cluster, endings: Iterable[Ending], now_ms: int) -> None:
    """Write the markers of ended transactions, and notify the groups.

    Partitions that have been deleted meanwhile are skipped.
    """
    for ending in endings:
        for topic, partition in sorted(ending.places):
            found = cluster.topics.named(topic)
            place = found.partition(partition) if found else None
            if place is not None:
                place.log.end_transaction(
                    ending.producer_id,
                    ending.marker_epoch,
                    ending.committed,
                    now_ms,
                    place.leader_epoch,
                )
        for group_id in ending.groups:
            group = cluster.groups.get(group_id)
            if isinstance(group, ClassicGroup):
                group.transaction_ended(ending.producer_id, ending.committed)
