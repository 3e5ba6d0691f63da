"""All that the brokers of one cluster know; every broker sees the same of it.

State only, and no waiting: handlers read and change it between two awaits.
"""

import uuid
from collections.abc import Hashable
from dataclasses import dataclass

from sharecons.testing.broker.access import Access
from sharecons.testing.broker.configs import Configs
from sharecons.testing.broker.coordinators import Coordinators
from sharecons.testing.broker.groups.registry import Groups
from sharecons.testing.broker.share.partitions import SharePartitions
from sharecons.testing.broker.share.sessions import ShareSessions
from sharecons.testing.broker.signals import Signal
from sharecons.testing.broker.topics import Topics
from sharecons.testing.broker.transactions import Transactions

__all__ = ["Broker", "Cluster"]


@dataclass(slots=True)
class Broker:
    """A broker with an id and an address."""

    node_id: int
    host: str
    port: int
    running: bool = False
    rack: str | None = None


class Cluster:
    """Brokers, topics, groups: one of each kind of state, by its own name."""

    def __init__(self, brokers: list[Broker]) -> None:
        self.cluster_id = uuid.uuid4().hex[:22]
        self.brokers = {broker.node_id: broker for broker in brokers}
        self.topics = Topics()
        self.configs = Configs()
        self.access = Access()
        self.coordinators = Coordinators()
        self.groups = Groups()
        self.share_partitions = SharePartitions()
        self.share_sessions = ShareSessions(self.share_partitions)
        self.transactions = Transactions()
        self.changed = Signal()
        """Told when leaders or coordinators have moved, or topics have gone."""

    @property
    def running(self) -> list[int]:
        """The node ids of the brokers that can be reached."""
        return [broker.node_id for broker in self.brokers.values() if broker.running]

    def broker_started(self, node_id: int) -> None:
        self.brokers[node_id].running = True
        self._elect()

    def broker_stopped(self, node_id: int) -> None:
        self.brokers[node_id].running = False
        self._elect()

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make a broker the leader of a partition, as an election does.

        Raises:
            LookupError: there is no such topic or partition.
        """
        found = self.topics.named(topic)
        place = found.partition(partition) if found else None
        if found is None or place is None:
            raise LookupError(f"no partition {partition} of a topic {topic!r}")
        place.leader = node_id
        place.leader_epoch += 1
        self.share_partitions.leader_moved(found.topic_id, partition)
        self.changed.ring()

    def connection_closed(self, connection: Hashable) -> None:
        """Let go of what lives as long as a connection: the share sessions."""
        self.share_sessions.connection_closed(connection)

    def _elect(self) -> None:
        """Give each partition without a living leader its first living replica."""
        running = self.running
        for topic in self.topics:
            for place in topic.partitions:
                if place.leader in running:
                    continue
                living = [node for node in place.replicas if node in running]
                leader = living[0] if living else -1
                if leader != place.leader:
                    self.move_leader(topic.name, place.index, leader)
        self.changed.ring()
