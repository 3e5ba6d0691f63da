"""A producer that writes each record once, or reports that it might not have.

Theory of operation
-------------------
Records wait for their topic's metadata, which gives the number of partitions and the
leaders. Each leader has one request in flight, with one batch for each partition that
has records. All in-sync replicas must have a batch before it counts as delivered.

A batch without a response, or with a passing error, is sent again with the same bytes
(`batches`), and the topic's metadata is requested if its leader might have changed. A
record that is not confirmed by its deadline fails; if it was sent, the leader might
have it nevertheless. So a record is written at most once, and has one event.

Any broker issues producer ids. They need no epochs of their own: a partition that needs
another one takes a new id, and the others keep their ids.

A caller can fix the producer id and the first sequence numbers, for example to continue
what a killed process has begun: a leader then appends only one of the batches that both
send. A fixed id is never replaced, as the leader would not recognize the batch then.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.errors import AuthenticationError, Error, UnsupportedVersionError
from sharecons.protocol import error_actions
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.admin.requests import (
    Reply,
    TopicMetadata,
    TopicMetadataRequest,
)
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.produce.batches import PartitionQueue, PendingRecord
from sharecons.protocol.produce.errors import (
    UNAUTHORIZED,
    append_error,
    expired_error,
    identity_error,
    no_partition_error,
    rejected_error,
    topic_error,
)
from sharecons.protocol.produce.messages import (
    AppendResult,
    InitProducerId,
    InitProducerIdResponse,
    Produce,
    ProduceResponse,
    ProducerIdentity,
)
from sharecons.protocol.produce.topics import TopicQueue
from sharecons.records.compression import Codec

__all__ = ["Delivered", "Failed", "NodeRequest", "ProduceEvent", "ProducerMachine"]

REPLICA_TIMEOUT: Final = 8.0
"""Seconds for the replicas; less than a pool waits for a response."""
MAX_REQUEST_SIZE: Final = 8 << 20

NOT_WRITTEN: Final = (Code.UNKNOWN_TOPIC_OR_PARTITION,)
"""Codes of a batch that is in no log of an existing topic. Kafka returns
NOT_LEADER_OR_FOLLOWER for a batch that waited for its replicas, too."""

Request = Produce | InitProducerId | TopicMetadataRequest
Response = ProduceResponse | InitProducerIdResponse | TopicMetadata


class NodeRequest(NamedTuple):
    """A request to a node; None is any broker."""

    node_id: int | None
    request: Request


class Delivered(NamedTuple):
    """All in-sync replicas have the record; an offset of -1 is not known."""

    record: PendingRecord
    partition: int
    offset: int


class Failed(NamedTuple):
    record: PendingRecord
    error: Error


ProduceEvent = Delivered | Failed


class ProducerMachine:
    """A state machine with up to one request in flight per node.

    Args:
        spread: a factor for backoffs, see `backoff`.
        compression: of the batches.
        identity: a fixed producer id; None to request one.
        sequences: with a fixed id, the sequence numbers of the first batches.
        first_partition: see `TopicQueue`.
        replica_timeout: seconds that a leader waits for its replicas; less than the
            time for the whole request.

    Attributes:
        events: the outcomes of records; the caller empties it.
    """

    def __init__(
        self,
        spread: float = 1.0,
        *,
        compression: Codec = Codec.NONE,
        identity: ProducerIdentity | None = None,
        sequences: Mapping[TopicPartition, int] | None = None,
        first_partition: int = 0,
        replica_timeout: float = REPLICA_TIMEOUT,
    ) -> None:
        self.events: list[ProduceEvent] = []
        self._spread = spread
        self._compression = compression
        self._topics: dict[str, TopicQueue] = {}
        self._identity = identity
        self._is_fixed = identity is not None
        self._sequences = sequences or {}
        self._first_partition = first_partition
        self._replica_timeout = replica_timeout
        self._identity_at = 0.0
        self._identity_backoff = Backoff(spread)
        self._busy: set[int | None] = set()
        self._throttled_until: dict[int | None, float] = {}

    @property
    def is_idle(self) -> bool:
        """True if no record waits for its outcome."""
        return all(topic.is_empty for topic in self._topics.values())

    def add(self, record: PendingRecord) -> None:
        """Produce a record; one of the events has its outcome."""
        topic = self._topics.get(record.topic)
        if topic is None:
            first = {
                each.partition: number
                for each, number in self._sequences.items()
                if each.topic == record.topic
            }
            topic = self._topics[record.topic] = TopicQueue(
                self._spread, first, self._first_partition
            )
        topic.add(record)

    # Requests.

    def next_requests(self, now: float) -> list[NodeRequest]:
        """Return the requests to send now; `on_response` or `on_error` ends each."""
        self._expire(now)
        self._forget_unused(now)
        requests = [*self._next_lookup(now), *self._next_by_leader(now)]
        self._busy.update(each.node_id for each in requests)
        return requests

    def _forget_unused(self, now: float) -> None:
        """Forget topics without records for minutes: a program can write to many."""
        unused = [
            name for name, topic in self._topics.items() if topic.refresh_metadata(now)
        ]
        if unused and not (self._is_fixed or None in self._busy):
            self._identity = None  # leaders know the sequence numbers of this one
            for name in unused:
                del self._topics[name]

    def next_deadline(self, now: float) -> float:
        """Return when to call `next_requests` again if no response comes before."""
        times = [math.inf]
        for topic in self._topics.values():
            times += topic.deadlines()
            if None not in self._busy and topic.needs_metadata:
                times.append(topic.metadata_at)
            for leader, queue in topic.sendable(self._busy):
                if self._identity_for(queue) is not None:
                    times.append(max(queue.not_before, self._throttle_end(leader)))
        if None not in self._busy and self._needs_identity:
            times.append(self._identity_at)
        return max(now, min(times))

    def _next_lookup(self, now: float) -> Iterator[NodeRequest]:
        # Metadata first: without a leader nothing needs a producer id.
        if None in self._busy:
            return
        names = tuple(
            name
            for name, topic in self._topics.items()
            if topic.needs_metadata and topic.metadata_at <= now
        )
        if names:
            for name in names:
                self._topics[name].is_stale = False
            yield NodeRequest(None, TopicMetadataRequest(names, False))
        elif self._needs_identity and self._identity_at <= now:
            yield NodeRequest(None, InitProducerId())

    @property
    def _needs_identity(self) -> bool:
        return not self._is_fixed and any(
            self._identity_for(queue) is None
            for topic in self._topics.values()
            for _, queue in topic.sendable(())
        )

    def _identity_for(self, queue: PartitionQueue) -> ProducerIdentity | None:
        if queue.identity is not None:
            return queue.identity
        return None if self._identity == queue.spent else self._identity

    def _throttle_end(self, leader: int) -> float:
        return self._throttled_until.get(leader, 0.0)

    def _next_by_leader(self, now: float) -> Iterator[NodeRequest]:
        by_leader: dict[int, dict[TopicPartition, bytes]] = {}
        room: dict[int, int] = {}
        for name, topic in self._topics.items():
            for leader, queue in topic.sendable(self._busy):
                identity = self._identity_for(queue)
                due = max(queue.not_before, self._throttle_end(leader)) <= now
                # The last batch can exceed the size, so a large one is sent at all.
                if not due or identity is None or room.get(leader, 1) <= 0:
                    continue
                partition = queue.partition
                batch = queue.next_batch(identity, self._compression)
                topic.on_batch_taken(partition)
                by_leader.setdefault(leader, {})[TopicPartition(name, partition)] = (
                    batch.data
                )
                room[leader] = room.get(leader, MAX_REQUEST_SIZE) - len(batch.data)
        for leader, batches in by_leader.items():
            yield NodeRequest(
                leader, Produce(batches=batches, timeout=self._replica_timeout)
            )

    def _expire(self, now: float) -> None:
        for topic in self._topics.values():
            for record in topic.expire(now):
                self._fail(record, expired_error(record, topic))

    # Responses.

    def on_response(self, request: NodeRequest, response: Response, now: float) -> None:
        self._busy.discard(request.node_id)
        match response:
            case ProduceResponse():
                assert isinstance(request.request, Produce)
                self._throttled_until[request.node_id] = now + response.throttle
                self._on_produced(request.request, response, now)
            case TopicMetadata():
                assert isinstance(request.request, TopicMetadataRequest)
                for name in request.request.names or ():
                    self._on_metadata(name, response.topics.get(name), now)
            case InitProducerIdResponse(error=Code.NONE):
                self._identity = response.identity
                self._identity_backoff.reset()
            case InitProducerIdResponse():
                self._on_identity_error(response.error, now)

    def on_error(self, request: NodeRequest, error: Error, now: float) -> None:
        """Handle a request without a response."""
        self._busy.discard(request.node_id)
        match request.request:
            case Produce(batches=batches):
                for topic_partition in batches:
                    topic = self._topics[topic_partition.topic]
                    topic.error = error
                    topic.queues[topic_partition.partition].on_failed(now)
                for topic in self._topics.values():
                    topic.on_leader_failed(request.node_id, now)
            case TopicMetadataRequest(names=names):
                for name in names or ():
                    self._topics[name].on_lookup_failed(error, now)
            case InitProducerId():
                self._identity_at = now + self._identity_backoff.next_delay()
        if isinstance(error, AuthenticationError | UnsupportedVersionError):
            self._fail_all(error)

    def _on_produced(
        self, request: Produce, response: ProduceResponse, now: float
    ) -> None:
        for topic_partition in request.batches:
            topic = self._topics[topic_partition.topic]
            queue = topic.queues[topic_partition.partition]
            found = response.partitions.get(topic_partition)
            if found is None:
                queue.on_failed(now)
                continue
            match action_for(error_actions.PRODUCE, found.error):
                case ErrorAction.PROCEED:
                    self._on_appended(topic_partition.partition, queue, found)
                case ErrorAction.NEW_PRODUCER_ID if self._restart(queue, now):
                    pass
                case ErrorAction.SPLIT_BATCH if queue.split():
                    pass
                case ErrorAction.RETRY | ErrorAction.FIND_LEADER as action:
                    topic.error = append_error(topic_partition, found)
                    is_uncertain = found.error not in NOT_WRITTEN
                    queue.on_failed(now, is_uncertain=is_uncertain)
                    if action is ErrorAction.FIND_LEADER:
                        topic.mark_stale(now)
                case _:
                    rejected = queue.on_rejected()
                    error = rejected_error(topic_partition, rejected, found)
                    for record in rejected:
                        self._fail(record, error)

    def _restart(self, queue: PartitionQueue, now: float) -> bool:
        return not self._is_fixed and queue.restart(now)

    def _on_appended(
        self, partition: int, queue: PartitionQueue, result: AppendResult
    ) -> None:
        known = result.base_offset >= 0
        for index, record in enumerate(queue.on_appended()):
            offset = result.base_offset + index if known else -1
            self.events.append(Delivered(record, partition, offset))

    def _on_metadata(self, name: str, reply: Reply[Topic] | None, now: float) -> None:
        topic = self._topics[name]
        code = Code.UNKNOWN_TOPIC_OR_PARTITION if reply is None else reply.code
        action = action_for(error_actions.PRODUCE, code)
        if reply is not None and reply.value is not None and code == Code.NONE:
            for record in topic.on_described(reply.value, now):
                self._fail(record, no_partition_error(record, topic))
            return
        error = topic_error(name, code)
        topic.on_lookup_failed(error, now)
        if action is ErrorAction.FAIL_BATCH:
            for record in topic.remove_all():
                self._fail(record, error)

    def _on_identity_error(self, code: int, now: float) -> None:
        self._identity_at = now + self._identity_backoff.next_delay()
        if code in UNAUTHORIZED:
            self._fail_all(identity_error(code))

    def _fail_all(self, error: Error) -> None:
        for topic in self._topics.values():
            for record in topic.remove_all():
                self._fail(record, error)

    def _fail(self, record: PendingRecord, error: Error) -> None:
        self.events.append(Failed(record, error))
