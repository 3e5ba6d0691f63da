"""Applies the end of transactions to logs and groups."""

from collections.abc import Iterable

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.transactions import TransactionEnd

__all__ = ["abort_expired", "apply_ends"]


def abort_expired(cluster: Cluster, now: float, now_ms: int) -> None:
    """Abort the transactions that have timed out."""
    apply_ends(cluster, cluster.transactions.advance(now), now_ms)


def apply_ends(cluster: Cluster, ends: Iterable[TransactionEnd], now_ms: int) -> None:
    """Write the markers of ended transactions, and notify the groups.

    Partitions that have been deleted meanwhile are skipped.
    """
    for end in ends:
        for topic, index in sorted(end.partitions):
            found = cluster.topics.by_name(topic)
            partition = found.partition(index) if found else None
            if partition is not None:
                partition.log.end_transaction(
                    end.producer_id,
                    end.marker_epoch,
                    end.committed,
                    now_ms,
                    partition.leader_epoch,
                )
        for group_id in end.groups:
            group = cluster.groups.get(group_id)
            if isinstance(group, ClassicGroup):
                group.transaction_ended(end.producer_id, end.committed)
