"""The state of a cluster, which all its brokers share.

It is state only and never waits: handlers read and change it between two awaits.
"""

import uuid
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from sharecons.testing.broker.acls import Authorizer
from sharecons.testing.broker.configs import Configs
from sharecons.testing.broker.coordinators import Coordinators
from sharecons.testing.broker.groups.registry import Groups
from sharecons.testing.broker.placement import Nodes
from sharecons.testing.broker.settings.brokers import replica_settings
from sharecons.testing.broker.share.dead_letters import DeadLetters
from sharecons.testing.broker.share.partitions import SharePartitions
from sharecons.testing.broker.share.sessions import ShareSessions
from sharecons.testing.broker.share.state_records import StateRecords
from sharecons.testing.broker.signals import Signal
from sharecons.testing.broker.telemetry import Telemetry
from sharecons.testing.broker.topics import NO_LEADER, Partition, Topic, Topics
from sharecons.testing.broker.transactions import Transactions

__all__ = ["Broker", "Cluster"]


@dataclass(slots=True)
class Broker:
    """A broker's node id and addresses."""

    node_id: int
    host: str
    port: int
    """0 until the broker has bound a free port."""
    running: bool = False
    rack: str | None = None
    bind_address: tuple[str, int] | None = None
    """The address that the broker binds, if it differs from the advertised one."""
    binds_wildcard: bool = False
    """It binds a wildcard address; clients get the address they have connected to."""


class Cluster:
    """The brokers, topics, groups and other state of a cluster."""

    def __init__(
        self, brokers: list[Broker], settings: Mapping[str, str] | None = None
    ) -> None:
        self.cluster_id = uuid.uuid4().hex[:22]
        self.brokers = {broker.node_id: broker for broker in brokers}
        self.topics = Topics()
        self.configs = Configs({**replica_settings(len(brokers)), **(settings or {})})
        self.telemetry = Telemetry(self.configs)
        self.authorizer = Authorizer()
        self.coordinators = Coordinators()
        self.groups = Groups()
        self.share_partitions = SharePartitions(
            self.configs, write=DeadLetters(self).write
        )
        self.state_records = StateRecords()
        self.share_sessions = ShareSessions(
            self.share_partitions,
            limit=int(self.configs.broker_value("group.share.max.share.sessions")),
        )
        self.transactions = Transactions()
        self.changed = Signal()
        """Notified when leaders or coordinators move, and when topics are deleted."""

    @property
    def running(self) -> list[int]:
        """The node ids of the brokers that run."""
        return [broker.node_id for broker in self.brokers.values() if broker.running]

    @property
    def nodes(self) -> Nodes:
        """The node ids of all brokers, running and stopped."""
        running = self.running
        stopped = [node_id for node_id in self.brokers if node_id not in running]
        return Nodes(running, stopped)

    @property
    def controller(self) -> int:
        """The node id that metadata reports as the controller; any would do."""
        return min(self.running, default=-1)

    def broker_started(self, node_id: int) -> None:
        self.brokers[node_id].running = True
        self._elect_leaders()

    def broker_stopped(self, node_id: int) -> None:
        self.brokers[node_id].running = False
        self.coordinators.node_stopped(node_id)
        self._elect_leaders()

    def add_topic(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        config: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create a topic with a partition for each list of replicas."""
        topic = self.topics.create(name, replicas, config)
        self._choose_leaders(topic.partitions)
        return topic

    def add_partitions(self, topic: Topic, replicas: Sequence[Sequence[int]]) -> None:
        self._choose_leaders(topic.add_partitions(replicas))

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic and its state in all groups."""
        self.topics.delete(topic)
        self.share_partitions.delete_topic(topic.topic_id)
        self.groups.delete_topic(topic.name)
        self.changed.notify()

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make a broker the leader of a partition, as an election does.

        Raises:
            LookupError: the topic, the partition or a running broker does not exist.
        """
        found = self.topics.by_name(topic)
        target = found.partition(partition) if found else None
        if found is None or target is None:
            raise LookupError(f"topic {topic!r} has no partition {partition}")
        if node_id not in (*self.running, NO_LEADER):
            raise LookupError(f"broker {node_id} does not exist or is stopped")
        if target.leader == node_id:
            return
        if node_id not in (*target.replicas, NO_LEADER):
            target.replicas = [node_id, *target.replicas[1:]]
        target.leader = node_id
        target.leader_epoch += 1
        self.share_partitions.leader_moved(found.topic_id, partition)
        self.changed.notify()

    def connection_closed(self, connection: Hashable) -> None:
        """End the share sessions of a connection."""
        self.share_sessions.connection_closed(connection)

    def _choose_leaders(self, partitions: Sequence[Partition]) -> None:
        """Choose running leaders for new partitions."""
        running = self.running
        for partition in partitions:
            partition.leader = partition.next_leader(running)
        self.changed.notify()

    def _elect_leaders(self) -> None:
        """Make the first running replica the leader where the leader has stopped."""
        running = self.running
        for topic in self.topics:
            for partition in topic.partitions:
                leader = partition.next_leader(running)
                if leader != partition.leader:
                    self.move_leader(topic.name, partition.index, leader)
        self.changed.notify()
