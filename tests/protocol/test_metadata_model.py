"""Metadata of a cluster whose leaders move and whose responses are outdated."""

import math
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sharecons.errors import ConnectionFailedError
from sharecons.protocol.codes import Code
from sharecons.protocol.group.messages import (
    MetadataRequest,
    MetadataResponse,
    TopicDescription,
)
from sharecons.protocol.group.metadata import MIN_HINT_INTERVAL, Metadata
from sharecons.protocol.partitions import Endpoint, PartitionLeader, SharePartition
from tests.protocol.hypothesis_profile import MACHINE, search

LOST: Final = ConnectionFailedError("the connection broke")
IDS: Final = {"a": bytes([1] * 16), "b": bytes([2] * 16)}
PARTITIONS: Final = [SharePartition(i, n) for i in IDS.values() for n in (0, 1)]
NODES: Final = (0, 1, 2)
LONGEST_PAUSE: Final = 1.2

partitions = st.sampled_from(PARTITIONS)
nodes = st.sampled_from(NODES)


def endpoint(node: int) -> Endpoint:
    return Endpoint(f"broker-{node}", 9092)


class Cluster:
    """The leaders of partitions, now and at earlier epochs; -1 means none."""

    def __init__(self) -> None:
        self.nodes = {0}
        self.topics: set[str] = set()
        self.history = {p: [PartitionLeader(0, 0)] for p in PARTITIONS}

    def leader(self, partition: SharePartition, *, lag: int = 0) -> PartitionLeader:
        history = self.history[partition]
        return history[max(0, len(history) - 1 - lag)]

    def move(self, partition: SharePartition, node: int) -> None:
        epoch = self.leader(partition).leader_epoch + 1
        self.history[partition].append(PartitionLeader(node, epoch))

    def describe(
        self, request: MetadataRequest, *, lag: int, nodes: set[int]
    ) -> MetadataResponse:
        assert not (request.names and request.ids), "names and ids in one request"
        by_id = {i: name for name, i in IDS.items()}
        named = [self._topic(name, lag) for name in request.names]
        is_known = [
            self._topic(by_id[i], lag)
            for i in request.ids
            if by_id[i] in self.topics or lag
        ]
        brokers = {node: endpoint(node) for node in sorted(nodes)}
        return MetadataResponse(brokers=brokers, topics=(*named, *is_known))

    def _topic(self, name: str, lag: int) -> TopicDescription:
        there = name in self.topics
        return TopicDescription(
            error=0 if there else Code.UNKNOWN_TOPIC_OR_PARTITION,
            name=name,
            topic_id=IDS[name] if there else None,
            leaders={
                p.partition: self.leader(p, lag=lag)
                for p in PARTITIONS
                if there and p.topic_id == IDS[name]
            },
        )


class MetadataAndCluster(RuleBasedStateMachine):
    """Metadata, the cluster, and the request in flight between them."""

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.cluster = Cluster()
        self.metadata = Metadata()
        self.subscribed: tuple[str, ...] = ()
        self.assigned: frozenset[SharePartition] = frozenset()
        self.in_flight: MetadataRequest | None = None
        self.epochs: dict[SharePartition, int] = {}
        """The epoch of the latest leader that metadata or a followed hint returned."""
        self.followed_at: dict[SharePartition, float] = {}

    # Changes of the cluster.

    @rule(name=st.sampled_from(sorted(IDS)))
    def create_topic(self, name: str) -> None:
        self.cluster.topics.add(name)

    @rule(partition=partitions, node=st.sampled_from([-1, *NODES]))
    def move_leader(self, partition: SharePartition, node: int) -> None:
        self.cluster.move(partition, node)

    @rule(node=nodes)
    def add_broker(self, node: int) -> None:
        self.cluster.nodes.add(node)

    # Calls of the driver.

    @rule(names=st.lists(st.sampled_from(sorted(IDS)), unique=True))
    def subscribe(self, names: list[str]) -> None:
        self.subscribed = tuple(names)
        self.metadata.set_subscription(self.subscribed, self.now)
        if not names:
            self.assign(frozenset())

    @precondition(lambda self: self.subscribed)
    @rule(assigned=st.frozensets(partitions))
    def assign(self, assigned: frozenset[SharePartition]) -> None:
        self.assigned = assigned
        self.metadata.set_assignment(assigned, self.now)

    @rule(seconds=st.sampled_from([0.01, 0.3, 2.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def mark_stale(self) -> None:
        self.metadata.mark_stale(self.now)

    @rule()
    def send(self) -> None:
        if self.in_flight is None:
            due = self.metadata.next_deadline(self.now)
            self.in_flight = self.metadata.next_request(self.now)
            assert (due <= self.now) == (self.in_flight is not None)

    @precondition(lambda self: self.in_flight is not None)
    @rule(lag=st.integers(0, 2), nodes=st.sets(nodes))
    def receive_response(self, lag: int, nodes: set[int]) -> None:
        request, self.in_flight = self.in_flight, None
        assert request is not None
        response = self.cluster.describe(request, lag=lag, nodes=nodes)
        self.metadata.on_response(request, response, self.now)
        for topic in response.topics:
            self.on_described(topic)
        assert self.metadata.next_deadline(self.now) > self.now
        if nodes:
            assert response.brokers == self.metadata.brokers

    def on_described(self, topic: TopicDescription) -> None:
        for number, leader in topic.leaders.items():
            assert topic.topic_id is not None
            partition = SharePartition(topic.topic_id, number)
            epoch = max(leader.leader_epoch, self.epochs.get(partition, 0))
            self.epochs[partition] = epoch

    @precondition(lambda self: self.in_flight is not None)
    @rule()
    def lose_request(self) -> None:
        request, self.in_flight = self.in_flight, None
        assert request is not None
        self.metadata.on_error(request, LOST, self.now)
        assert self.metadata.next_deadline(self.now) > self.now

    # Hints.

    @rule(partition=partitions, lag=st.integers(0, 2), is_known=st.booleans())
    def receive_leader(
        self, partition: SharePartition, lag: int, is_known: bool
    ) -> None:
        moved = self.cluster.leader(partition, lag=lag)
        if is_known and moved.leader_id >= 0:
            self.metadata.update_endpoints({moved.leader_id: endpoint(moved.leader_id)})
        before = self.leader_of(partition)
        is_followed = self.is_followed(partition, moved)
        self.metadata.on_leader_moved(partition, moved, self.now)
        if is_followed:
            self.epochs[partition] = moved.leader_epoch
            self.followed_at[partition] = self.now
        if partition not in self.assigned:
            return

        after = self.leader_of(partition)
        if is_followed:
            assert after == (moved.leader_id if self.is_fetched(partition) else None)
        elif moved.leader_id >= 0 and not self.is_newer(partition, moved):
            assert after == before
            self.check_request_is_near()
        else:
            assert after is None
            self.check_request_is_near()

    def is_newer(self, partition: SharePartition, moved: PartitionLeader) -> bool:
        return moved.leader_epoch > self.epochs.get(partition, -1)

    def is_followed(self, partition: SharePartition, moved: PartitionLeader) -> bool:
        """Return whether a hint is newer, reachable, and not too soon after another."""
        pause = self.now - self.followed_at.get(partition, -math.inf)
        return (
            self.is_newer(partition, moved)
            and moved.leader_id in self.metadata.brokers
            and pause > MIN_HINT_INTERVAL
        )

    def is_fetched(self, partition: SharePartition) -> bool:
        """Return whether its topic is subscribed, or was never described."""
        return (
            partition in self.subscribed_partitions()
            or partition.topic_id not in self.metadata.topic_names
        )

    @rule(partition=partitions)
    def receive_missing_leader(self, partition: SharePartition) -> None:
        self.metadata.on_leader_moved(partition, PartitionLeader(-1, -1), self.now)
        assert self.leader_of(partition) is None
        if self.subscribed or self.assigned:
            self.check_request_is_near()

    def leader_of(self, partition: SharePartition) -> int | None:
        for node, led in self.metadata.leaders().items():
            if partition in led:
                return node
        return None

    def check_request_is_near(self) -> None:
        assert self.metadata.next_deadline(self.now) <= self.now + LONGEST_PAUSE

    # Invariants.

    @invariant()
    def leaders_are_known_brokers_of_assigned_partitions(self) -> None:
        leaders = self.metadata.leaders()
        led = [partition for group in leaders.values() for partition in group]
        assert leaders.keys() <= self.metadata.brokers.keys()
        assert len(led) == len(set(led))
        assert set(led) <= self.assigned

    @invariant()
    def every_leader_has_the_latest_known_epoch(self) -> None:
        for node, led in self.metadata.leaders().items():
            for partition in led:
                leader = PartitionLeader(node, self.epochs[partition])
                assert leader in self.cluster.history[partition]

    @rule()
    def run_without_faults(self) -> None:
        self.cluster.nodes |= {*NODES}
        self.cluster.topics |= IDS.keys()
        for partition in PARTITIONS:
            if self.cluster.leader(partition).leader_id < 0:
                self.cluster.move(partition, 1)
        self.assign(self.assigned & self.subscribed_partitions())
        self.metadata.mark_stale(self.now)
        end = self.now + 10.0
        while self.now < end:
            self.send()
            if self.in_flight is not None:
                self.receive_response(0, {*NODES})
            self.now = min(end, max(self.now, self.metadata.next_deadline(self.now)))

        expected: dict[int, set[SharePartition]] = {}
        for partition in self.assigned:
            node = self.cluster.leader(partition).leader_id
            expected.setdefault(node, set()).add(partition)
        assert expected == self.metadata.leaders()

    def subscribed_partitions(self) -> frozenset[SharePartition]:
        ids = {IDS[name] for name in self.subscribed}
        return frozenset(p for p in PARTITIONS if p.topic_id in ids)

    @rule()
    def unsubscribe(self) -> None:
        self.subscribe([])
        if self.in_flight is None:
            assert math.inf == self.metadata.next_deadline(self.now)

    def teardown(self) -> None:
        if hasattr(self, "metadata"):
            self.metadata.close()
            assert self.metadata.next_request(self.now + 1e6) is None


MetadataAndCluster.TestCase.settings = MACHINE
TestMetadataAndCluster = search(MetadataAndCluster.TestCase)


def test_older_leader_is_ignored_if_the_current_one_led_before() -> None:
    partition = PARTITIONS[0]
    machine = MetadataAndCluster()
    machine.begin()
    machine.subscribe(["a"])
    machine.move_leader(partition, 1)
    machine.move_leader(partition, 0)  # as at epoch 0
    machine.run_without_faults()
    machine.assign(frozenset({partition}))

    machine.receive_leader(partition, lag=1, is_known=True)

    assert 0 == machine.leader_of(partition)
