"""Three brokers behind proxies, and the operations that faults need."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import TopicPartition

from sharecons.testing.kafka import KafkaCluster
from sharecons.testing.kafka.ports import free_ports
from tests.chaos.certificates import Certificates
from tests.chaos.proxy import Proxies
from tests.kafka_plugin import Admin

__all__ = ["Cluster", "running_cluster"]

BROKERS: Final = 3
PARTITIONS: Final = 6
LISTENER: Final = "PROXIED"
SAFE: Final = {
    # As in production: a write is confirmed by two of three brokers.
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    # Bytes per second are limited within a second of the quota, not within eleven.
    "quota.window.num": "2",
}


class Cluster:
    """A running cluster.

    Attributes:
        kafka: the brokers.
        proxies: before each broker's listener for clients.
        admin: for changes; it does not pass through the proxies.
        certificates: of a cluster with TLS and SCRAM before the proxies, else None.
    """

    def __init__(
        self,
        kafka: KafkaCluster,
        proxies: Proxies,
        servers: str,
        certificates: Certificates | None = None,
    ) -> None:
        self.kafka = kafka
        self.proxies = proxies
        self.certificates = certificates
        self.admin = Admin(kafka.bootstrap_servers)
        self.servers = servers
        """The proxies' addresses, for clients."""

    def create_topics(self, topic: str, group: str) -> None:
        """Create a topic, with one for dead letters and one for retries.

        The group reads it from its start.
        """
        self.admin.create_topic(PARTITIONS, topic, replication=3)
        for copies in ("dead", "retry"):
            self.admin.create_topic(2, f"{topic}.{copies}", replication=3)
        self.admin.set_group_config(group, {"share.auto.offset.reset": "earliest"})

    def broker(self, role: str, topic: str, group: str, number: int) -> int:
        """Return the node id of a running broker with a role; see `plan.ROLES`."""
        running = sorted(self.kafka.running)
        found = -1
        match role:
            case "leader":
                found = self.admin.leader(topic, number % PARTITIONS)
            case "coordinator":
                found = self.admin.group_coordinator(group)
            case "controller":
                found = self._controller()
        return found if found in running else running[number % len(running)]

    def add_partition(self, topic: str, limit: int) -> None:
        """Add a partition to a topic that has fewer than `limit`."""
        count = self.admin.partitions(topic)
        if count < limit:
            self.admin.add_partitions(topic, count + 1)

    def drain(
        self, node_id: int, topics: Sequence[str]
    ) -> Mapping[TopicPartition, Sequence[int]]:
        """Move the partitions that a broker leads to the other brokers.

        Return the replicas of these partitions before, the broker as the last one.
        """
        others = tuple(sorted(set(self.kafka.brokers) - {node_id}))
        led = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in self.admin.partitions_led_by(topic, node_id)
        ]
        self.admin.reassign(dict.fromkeys(led, others))
        return dict.fromkeys(led, (*others, node_id))

    def heal(self) -> None:
        """Start and resume all brokers, and open all proxies."""
        for node_id in self.kafka.brokers:
            self.kafka.resume(node_id)
            self.proxies.set_mode(node_id, "open")
        self.kafka.start_broker(*self.kafka.brokers)

    def _controller(self) -> int:
        """Return the leader of the quorum, as the brokers have noted it."""
        leaders = []
        for node_id in self.kafka.running:
            log = self.kafka.log_directory(node_id) / "__cluster_metadata-0"
            try:
                state = json.loads((log / "quorum-state").read_text())
            except (OSError, ValueError):
                continue
            leaders.append((state["leaderEpoch"], state["leaderId"]))
        return max(leaders, default=(0, -1))[1]


@contextmanager
def running_cluster(
    version: str,
    config: Mapping[str, str] | None = None,
    secrets: Path | None = None,
) -> Iterator[Cluster]:
    """Run a cluster during the block.

    Args:
        secrets: a new directory for certificates; None for no TLS.
    """
    certificates = None if secrets is None else Certificates(secrets, LISTENER)
    protocol = "PLAINTEXT" if certificates is None else "SASL_SSL"
    settings = {} if certificates is None else certificates.config
    ports = free_ports(BROKERS)
    nodes = dict(enumerate(ports, start=1))
    kafka = KafkaCluster(
        version,
        brokers=BROKERS,
        config={**SAFE, **settings, **(config or {})},
        listeners={LISTENER: protocol},
        advertised={LISTENER: nodes},
    )
    with kafka:
        behind = [
            int(each.rpartition(":")[2]) for each in kafka.listener(LISTENER).split(",")
        ]
        targets = dict(enumerate(behind, start=1))
        with Proxies(nodes, targets) as proxies:
            servers = ",".join(f"127.0.0.1:{port}" for port in ports)
            if certificates is not None:
                certificates.change_password(kafka.bootstrap_servers)
            yield Cluster(kafka, proxies, servers, certificates)
