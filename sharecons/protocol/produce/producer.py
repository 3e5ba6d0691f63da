"""A producer that writes each record once, or reports that it may not have.

Theory of operation
-------------------
Records wait for their topic's metadata, which gives the number of partitions and the
leaders. Each leader has one request in flight, with one batch for each partition that
has records. All in-sync replicas must have a batch before it counts as delivered.

A batch without a response, or with a passing error, is sent again with the same bytes
(`batches`), and the topic's metadata is requested if its leader may have changed. A
record that is not confirmed by its deadline fails; if it was sent, the leader may have
it nevertheless. So a record is written at most once, and has one event.

Any broker issues producer ids. They need no epochs of their own: a partition that needs
another one takes a new id, and the others keep theirs.
"""

import math
from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerError,
    Error,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.protocol import error_actions
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.admin.requests import (
    Reply,
    TopicMetadata,
    TopicMetadataRequest,
)
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.produce.batches import PartitionQueue, ProducerRecord
from sharecons.protocol.produce.messages import (
    AppendResult,
    InitProducerId,
    InitProducerIdResponse,
    Produce,
    ProduceResponse,
    ProducerIdentity,
)
from sharecons.protocol.produce.partitioner import partition_of_key
from sharecons.records.compression import Codec

__all__ = ["Delivered", "Failed", "NodeRequest", "ProduceEvent", "Producer"]

REPLICA_TIMEOUT: Final = 8.0
"""Seconds for the replicas; less than a pool waits for a response."""
MAX_REQUEST_SIZE: Final = 8 << 20

_UNAUTHORIZED: Final = (
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.CLUSTER_AUTHORIZATION_FAILED,
)

Request = Produce | InitProducerId | TopicMetadataRequest
Response = ProduceResponse | InitProducerIdResponse | TopicMetadata


class NodeRequest(NamedTuple):
    """A request to a node; None is any broker."""

    node_id: int | None
    request: Request


class Delivered(NamedTuple):
    """All in-sync replicas have the record; an offset of -1 is not known."""

    record: ProducerRecord
    partition: int
    offset: int


class Failed(NamedTuple):
    record: ProducerRecord
    error: Error


ProduceEvent = Delivered | Failed


class Producer:
    """A state machine with up to one request in flight per node.

    Args:
        spread: a factor for backoffs, see `backoff`.
        compression: of the batches.

    Attributes:
        events: the outcomes of records; the caller empties it.
    """

    def __init__(self, spread: float = 1.0, *, compression: Codec = Codec.NONE) -> None:
        self.events: list[ProduceEvent] = []
        self._spread = spread
        self._compression = compression
        self._topics: dict[str, _TopicQueue] = {}
        self._identity: ProducerIdentity | None = None
        self._identity_at = 0.0
        self._identity_backoff = Backoff(spread)
        self._busy: set[int | None] = set()
        self._throttled_until: dict[int | None, float] = {}

    @property
    def is_idle(self) -> bool:
        """True if no record waits for its outcome."""
        return all(topic.is_empty for topic in self._topics.values())

    def add(self, record: ProducerRecord) -> None:
        """Produce a record; one of the events has its outcome."""
        topic = self._topics.get(record.topic)
        if topic is None:
            topic = self._topics[record.topic] = _TopicQueue(self._spread)
        topic.add(record)

    # Requests.

    def next_requests(self, now: float) -> list[NodeRequest]:
        """Return the requests to send now; `on_response` or `on_error` ends each."""
        self._expire(now)
        requests = [*self._next_lookup(now), *self._next_by_leader(now)]
        self._busy.update(each.node_id for each in requests)
        return requests

    def next_deadline(self, now: float) -> float:
        """Return when to call `next_requests` again if no response comes before."""
        times = [math.inf]
        for topic in self._topics.values():
            times += topic.deadlines()
            if None not in self._busy and topic.needs_metadata:
                times.append(topic.metadata_at)
            for leader, queue in topic.sendable(self._busy):
                if self._identity_for(queue) is None:
                    if None not in self._busy:
                        times.append(self._identity_at)
                else:
                    times.append(max(queue.not_before, self._throttle_end(leader)))
        return max(now, min(times))

    def _next_lookup(self, now: float) -> Iterator[NodeRequest]:
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
        return any(
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
            yield NodeRequest(leader, Produce(batches=batches, timeout=REPLICA_TIMEOUT))

    def _expire(self, now: float) -> None:
        for topic in self._topics.values():
            for record in topic.expire(now):
                self._fail(record, _expired_error(record, topic.error))

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
                    topic.mark_stale(now)
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
                case ErrorAction.NEW_PRODUCER_ID if queue.restart(now):
                    pass
                case ErrorAction.SPLIT_BATCH if queue.split():
                    pass
                case ErrorAction.RETRY | ErrorAction.FIND_LEADER as action:
                    topic.error = _broker_error(topic_partition, found)
                    queue.on_failed(now)
                    if action is ErrorAction.FIND_LEADER:
                        topic.mark_stale(now)
                case _:
                    error = _broker_error(topic_partition, found)
                    for record in queue.on_rejected():
                        self._fail(record, error)

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
                self._fail(record, _no_partition_error(record, topic))
            return
        error = _topic_error(name, code)
        topic.on_lookup_failed(error, now)
        if action is ErrorAction.FAIL_BATCH:
            for record in topic.remove_all():
                self._fail(record, error)

    def _on_identity_error(self, code: int, now: float) -> None:
        self._identity_at = now + self._identity_backoff.next_delay()
        if code in _UNAUTHORIZED:
            text = "this principal may not produce idempotently (IDEMPOTENT_WRITE)"
            name = code_name(code)
            self._fail_all(AuthorizationError(f"{text}: {name}", code=code, name=name))

    def _fail_all(self, error: Error) -> None:
        for topic in self._topics.values():
            for record in topic.remove_all():
                self._fail(record, error)

    def _fail(self, record: ProducerRecord, error: Error) -> None:
        self.events.append(Failed(record, error))


class _TopicQueue:
    """The partitions of one topic, and the records that wait for its metadata.

    Attributes:
        leaders: nodes by partition; without those not known.
        queues: by partition.
        error: why the last request failed, for messages.
        is_stale: the metadata is to be requested.
        metadata_at: when to request it.
    """

    def __init__(self, spread: float) -> None:
        self.leaders: dict[int, int] = {}
        self.queues: dict[int, PartitionQueue] = {}
        self.error: Error | None = None
        self.is_stale = True
        self.metadata_at = 0.0
        self._spread = spread
        self._backoff = Backoff(spread)
        self._partitions = 0
        self._next_partition = 0
        self._waiting: list[ProducerRecord] = []

    @property
    def partitions(self) -> int:
        """The number of partitions; 0 if it is not known."""
        return self._partitions

    @property
    def is_empty(self) -> bool:
        return not self._waiting and all(q.is_empty for q in self.queues.values())

    @property
    def needs_metadata(self) -> bool:
        """True if there are records, and their leaders are not known or stale."""
        if self.is_empty:
            return False
        return (
            self.is_stale
            or bool(self._waiting)
            or any(
                partition not in self.leaders and not queue.is_empty
                for partition, queue in self.queues.items()
            )
        )

    def add(self, record: ProducerRecord) -> None:
        if (record.partition or 0) < self._partitions:
            self._queue_of(record).add(record)
        else:
            self._waiting.append(record)

    def _queue_of(self, record: ProducerRecord) -> PartitionQueue:
        partition = record.partition
        if partition is None:
            key = record.record.key
            if key is None:
                partition = self._next_partition
            else:
                partition = partition_of_key(key, self._partitions)
        return self.queues[partition]

    def on_batch_taken(self, partition: int) -> None:
        """Let the next records without a key go to another partition."""
        if partition == self._next_partition:
            self._next_partition = (partition + 1) % self._partitions

    def sendable(
        self, busy: Container[int | None]
    ) -> Iterator[tuple[int, PartitionQueue]]:
        """Yield leaders that are not busy, with queues that have records for them."""
        for partition, queue in self.queues.items():
            leader = self.leaders.get(partition)
            waits = not (queue.is_empty or queue.in_flight)
            if waits and leader is not None and leader not in busy:
                yield leader, queue

    def deadlines(self) -> Iterator[float]:
        """Yield when the next records expire."""
        yield from (record.deadline for record in self._waiting[:1])
        for queue in self.queues.values():
            if not (queue.is_empty or queue.in_flight):
                yield queue.next_deadline()

    def expire(self, now: float) -> list[ProducerRecord]:
        """Remove the records whose deadlines have passed, but for those in flight."""
        expired = [each for each in self._waiting if now >= each.deadline]
        if expired:
            self._waiting = [each for each in self._waiting if now < each.deadline]
        for queue in self.queues.values():
            expired += queue.expire(now)
        return expired

    def remove_all(self) -> list[ProducerRecord]:
        """Remove all records but those in flight."""
        removed, self._waiting = self._waiting, []
        for queue in self.queues.values():
            removed += queue.remove_all()
        return removed

    # Metadata.

    def mark_stale(self, now: float) -> None:
        """Request metadata again: a leader may have changed."""
        if not self.is_stale:
            self.is_stale = True
            self.metadata_at = now + self._backoff.next_delay()

    def on_lookup_failed(self, error: Error, now: float) -> None:
        self.error = error
        self.is_stale = True
        self.metadata_at = now + self._backoff.next_delay()

    def on_described(self, topic: Topic, now: float) -> list[ProducerRecord]:
        """Use new metadata; return waiting records whose partition does not exist."""
        # Partitions are never removed, but a new topic may have the same name.
        self._partitions = max(topic.partitions, default=-1) + 1
        self.leaders = {
            partition: info.leader
            for partition, info in topic.partitions.items()
            if info.leader is not None
        }
        for partition in range(self._partitions):
            self.queues.setdefault(partition, PartitionQueue(partition, self._spread))
        self._next_partition %= max(1, self._partitions)
        missing = []
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            if not self._partitions:
                self._waiting.append(record)
            elif (record.partition or 0) >= self._partitions:
                missing.append(record)
            else:
                self._queue_of(record).add(record)
        if self.needs_metadata:
            self.metadata_at = now + self._backoff.next_delay()
        else:
            self._backoff.reset()
        return missing


def _broker_error(where: TopicPartition, result: AppendResult) -> BrokerError:
    name = code_name(result.error)
    reason = f": {result.message}" if result.message else ""
    text = f"{where.topic}-{where.partition} did not take a batch: {name}{reason}"
    kind = AuthorizationError if result.error in _UNAUTHORIZED else BrokerError
    return kind(text, code=result.error, name=name)


def _topic_error(topic: str, code: int) -> BrokerError:
    name = code_name(code)
    kind = AuthorizationError if code in _UNAUTHORIZED else BrokerError
    return kind(f"cannot produce to topic {topic!r}: {name}", code=code, name=name)


def _no_partition_error(record: ProducerRecord, topic: _TopicQueue) -> BrokerError:
    code = Code.UNKNOWN_TOPIC_OR_PARTITION
    return BrokerError(
        f"topic {record.topic!r} has no partition {record.partition}: it has "
        f"{topic.partitions}",
        code=code,
        name=code.name,
    )


def _expired_error(record: ProducerRecord, last: Error | None) -> Error:
    reason = f"; last error: {last}" if last is not None else ""
    outcome = "may have been" if record.was_sent else "was not"
    error = RequestTimedOutError(
        f"a record for topic {record.topic!r} was not confirmed in time; it {outcome} "
        f"written{reason}"
    )
    error.__cause__ = last
    return error
