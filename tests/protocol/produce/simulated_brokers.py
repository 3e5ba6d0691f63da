"""Simulated brokers for tests of the producer; they append each sequence once."""

from dataclasses import dataclass, field

from sharecons._record import DETACHED, TopicPartition
from sharecons.protocol.admin.models import Broker, Topic, TopicPartitionInfo
from sharecons.protocol.admin.requests import Reply, TopicMetadata, TopicMetadataRequest
from sharecons.protocol.codes import Code
from sharecons.protocol.produce.messages import (
    AppendResult,
    InitProducerId,
    InitProducerIdResponse,
    Produce,
    ProduceResponse,
    ProducerIdentity,
)
from sharecons.protocol.produce.producer import NodeRequest, Response
from sharecons.records.batch import decode
from sharecons.records.batch_header import Header

__all__ = ["SimulatedBrokers", "values_of"]


def values_of(batch: bytes) -> list[bytes]:
    count = Header(memoryview(batch), 0).count
    decoded = decode(batch, [(0, count - 1, 1)], "t", 0, DETACHED)
    return [record.value for record in decoded.records]


@dataclass
class ProducerState:
    """A leader's state of one producer: its last batch and next sequence."""

    next_sequence: int = 0
    last: tuple[int, int] | None = None  # base sequence, base offset


@dataclass
class SimulatedBrokers:
    """Topics with logs, and leaders that can move.

    Attributes:
        logs: values by partition.
        leaders: nodes by partition.
        errors: codes to return instead of appending, by partition.
        max_records: larger batches are too large.
        left_out: partitions that responses do not have.
    """

    logs: dict[TopicPartition, list[bytes]] = field(default_factory=dict)
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    errors: dict[TopicPartition, int] = field(default_factory=dict)
    topic_errors: dict[str, int] = field(default_factory=dict)
    max_records: int = 1 << 30
    left_out: set[TopicPartition] = field(default_factory=set)
    requests: list[NodeRequest] = field(default_factory=list)
    _states: dict[tuple[int, TopicPartition], ProducerState] = field(
        default_factory=dict
    )
    _last_id: int = 0
    _deleted: int = 0

    def delete(self, topic: str) -> None:
        self._deleted += 1
        for where in [where for where in self.logs if where.topic == topic]:
            del self.logs[where], self.leaders[where]

    def create(self, topic: str, partitions: int, nodes: int = 2) -> None:
        for partition in range(partitions):
            self.logs[TopicPartition(topic, partition)] = []
            self.leaders[TopicPartition(topic, partition)] = partition % nodes

    def forget_producers(self) -> None:
        """Lose the state of all producers, as after transactional.id.expiration."""
        self._states.clear()

    def handle(self, request: NodeRequest) -> Response:
        self.requests.append(request)
        match request.request:
            case InitProducerId():
                self._last_id += 1
                identity = ProducerIdentity(self._last_id, 0)
                return InitProducerIdResponse(error=Code.NONE, identity=identity)
            case TopicMetadataRequest(names=names):
                topics = {name: self._described(name) for name in names or ()}
                brokers = {
                    node: Broker(node_id=node, host="broker", port=node, rack=None)
                    for node in range(3)
                }
                return TopicMetadata(brokers, topics)
            case Produce(batches=batches):
                return ProduceResponse(
                    partitions={
                        where: self._append(request.node_id, where, batch)
                        for where, batch in batches.items()
                        if where not in self.left_out
                    },
                    throttle=0.0,
                )

    def _described(self, name: str) -> Reply[Topic]:
        partitions = {
            where.partition: TopicPartitionInfo(
                leader=leader if leader >= 0 else None,
                leader_epoch=0,
                replicas=(),
                in_sync=(),
            )
            for where, leader in self.leaders.items()
            if where.topic == name
        }
        code = self.topic_errors.get(name, Code.NONE)
        if not partitions:
            code = Code.UNKNOWN_TOPIC_OR_PARTITION
        topic_id = self._deleted.to_bytes(16, "big")
        return Reply(code, None, _topic(name, topic_id, partitions))

    def _append(
        self, node_id: int | None, where: TopicPartition, batch: bytes
    ) -> AppendResult:
        if where not in self.leaders:
            return AppendResult(Code.UNKNOWN_TOPIC_OR_PARTITION, None, -1)
        if self.leaders.get(where) != node_id:
            return AppendResult(Code.NOT_LEADER_OR_FOLLOWER, None, -1)
        if where in self.errors:
            return AppendResult(self.errors[where], "as configured", -1)
        values = values_of(batch)
        if len(values) > self.max_records:
            return AppendResult(Code.MESSAGE_TOO_LARGE, None, -1)
        header = Header(memoryview(batch), 0)
        producer_id, sequence = _producer_of(batch)
        assert header.count == len(values)
        state = self._states.setdefault((producer_id, where), ProducerState())
        if state.last is not None and sequence == state.last[0]:
            return AppendResult(Code.NONE, None, state.last[1])
        if sequence != state.next_sequence:
            return AppendResult(Code.OUT_OF_ORDER_SEQUENCE_NUMBER, None, -1)
        log = self.logs[where]
        state.last = sequence, len(log)
        state.next_sequence = sequence + len(values)
        log += values
        return AppendResult(Code.NONE, None, state.last[1])


def _topic(
    name: str, topic_id: bytes, partitions: dict[int, TopicPartitionInfo]
) -> Topic:
    return Topic(
        name=name,
        topic_id=topic_id,
        internal=False,
        partitions=partitions,
        authorized_operations=None,
    )


def _producer_of(batch: bytes) -> tuple[int, int]:
    """Return the producer id and base sequence; `batch_header` has the positions."""
    producer_id = int.from_bytes(batch[43:51], "big", signed=True)
    return producer_id, int.from_bytes(batch[53:57], "big", signed=True)
