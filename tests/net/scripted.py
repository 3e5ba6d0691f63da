"""A small broker with one topic that supports fault injection.

A consumer uses it through `network=`, in memory and virtual time. It can misbehave in
ways that a real broker cannot. It shares no code with the client except the encoder of
record batches.

`broker.answers` has a function for each API key that returns the response; by default
the method with the API's name. A test may replace it by a function that returns an
entity of kio, raw bytes, or one of these:

    CUT       the connection ends instead of a response
    SILENCE   no response is sent
    Late      the response is sent after so many more seconds

`broker.log` has all requests. Records are kept per partition by `Share`, which
follows KIP-932 as far as one member can tell: acquisition, delivery counts, locks,
sessions that end with their connection.
"""

import math
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import anyio
from anyio.abc import ByteStream
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2 import RequestHeader
from kio.serial import entity_reader

from sharecons import ShareConsumer
from sharecons.net.io.transport import StreamTransport
from sharecons.records.encoder import NewRecord, encode
from tests.wire.oracle import encode_entity, schema

__all__ = [
    "ACKNOWLEDGE",
    "ALTER_CONFIGS",
    "CUT",
    "DESCRIBE_CONFIGS",
    "FETCH",
    "FIND_COORDINATOR",
    "HEARTBEAT",
    "METADATA",
    "SILENCE",
    "VERSIONS",
    "Asked",
    "Late",
    "Parked",
    "ScriptedBroker",
    "consuming",
    "first",
    "response_with",
]

METADATA = 3
FIND_COORDINATOR = 10
VERSIONS = 18
DESCRIBE_CONFIGS = 32
ALTER_CONFIGS = 44
HEARTBEAT = 76
FETCH = 78
ACKNOWLEDGE = 79

APIS = {
    METADATA: "metadata",
    FIND_COORDINATOR: "find_coordinator",
    VERSIONS: "api_versions",
    DESCRIBE_CONFIGS: "describe_configs",
    ALTER_CONFIGS: "incremental_alter_configs",
    HEARTBEAT: "share_group_heartbeat",
    FETCH: "share_fetch",
    ACKNOWLEDGE: "share_acknowledge",
}
SERVED = {
    METADATA: (0, 13),
    FIND_COORDINATOR: (0, 6),
    VERSIONS: (0, 4),
    DESCRIBE_CONFIGS: (1, 4),
    ALTER_CONFIGS: (0, 1),
    HEARTBEAT: (1, 1),
    FETCH: (1, 2),
    ACKNOWLEDGE: (1, 2),
}

LATENCY = 0.001
"""Seconds per response: without any, a request storm would never end."""

NO_NODE = -1
NO_TIME = timedelta(0)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

CUT = "cut"
SILENCE = "silence"


class Late(NamedTuple):
    seconds: float
    answer: Any


class Parked(NamedTuple):
    """A fetch that waits for records."""

    until: float
    again: Callable[[], Any]


class Asked(NamedTuple):
    """A request as it came."""

    at: float
    key: int
    version: int
    request: Any
    stream: "BrokerStream"

    @property
    def node(self) -> int:
        return self.stream.node

    @property
    def schema(self) -> Any:
        return schema(APIS[self.key], self.version).response


Answer = Callable[[Asked], Any]


# Records.


class State(Enum):
    AVAILABLE = auto()
    ACQUIRED = auto()
    ACKNOWLEDGED = auto()
    ARCHIVED = auto()


@dataclass
class Held:
    """The state of one record in the share-partition."""

    value: bytes
    state: State = State.AVAILABLE
    count: int = 0
    session: Any = None
    until: float = math.inf


@dataclass
class Share:
    """One share-partition."""

    records: list[Held] = field(default_factory=list)
    lock: float = 30.0
    limit: int = 5

    def available(self) -> list[int]:
        self._expire()
        states = enumerate(self.records)
        return [offset for offset, r in states if r.state is State.AVAILABLE]

    def acquire(self, limit: int, session: Any) -> list[tuple[int, int, int]]:
        """Return ranges of first offset, last offset and delivery count."""
        ranges: list[tuple[int, int, int]] = []
        for offset in self.available()[:limit]:
            record = self.records[offset]
            record.state, record.session = State.ACQUIRED, session
            record.count += 1
            record.until = anyio.current_time() + self.lock
            if ranges and (ranges[-1][1] + 1, ranges[-1][2]) == (offset, record.count):
                ranges[-1] = (ranges[-1][0], offset, record.count)
            else:
                ranges.append((offset, offset, record.count))
        return ranges

    def payload(self, ranges: list[tuple[int, int, int]]) -> bytes:
        if not ranges:
            return b""
        first, last = ranges[0][0], ranges[-1][1]
        records = [NewRecord(value=r.value) for r in self.records[first : last + 1]]
        return encode(records, base_offset=first, base_timestamp=0)

    def acknowledge(self, batches: Any, session: Any) -> ErrorCode:
        """All or nothing, as a real broker's."""
        said = [
            (self.records[offset], kind)
            for batch in batches
            for offset, kind in zip(
                range(batch.first_offset, batch.last_offset + 1),
                batch.acknowledge_types * (batch.last_offset - batch.first_offset + 1)
                if len(batch.acknowledge_types) == 1
                else batch.acknowledge_types,
                strict=True,
            )
        ]
        self._expire()
        if any(r.state is not State.ACQUIRED or r.session != session for r, _ in said):
            return ErrorCode.invalid_record_state
        for record, kind in said:
            if kind == RENEW:
                record.until = anyio.current_time() + self.lock
            elif kind == ACCEPT:
                record.state = State.ACKNOWLEDGED
            elif kind == RELEASE:
                self._let_go(record)
            else:
                record.state = State.ARCHIVED
        return ErrorCode.none

    def session_ended(self, session: Any) -> None:
        for record in self.records:
            if record.state is State.ACQUIRED and record.session == session:
                self._let_go(record)

    def _expire(self) -> None:
        for record in self.records:
            if record.state is State.ACQUIRED and anyio.current_time() >= record.until:
                self._let_go(record)

    def _let_go(self, record: Held) -> None:
        over = record.count >= self.limit
        record.state = State.ARCHIVED if over else State.AVAILABLE


@dataclass
class Session:
    """A share session; it lives as long as its connection."""

    member: str
    epoch: int
    partitions: set[tuple[UUID, int]] = field(default_factory=set)


# The broker.


class ScriptedBroker:
    """A cluster of brokers, seen from one consumer.

    Attributes:
        answers: by API key, who answers.
        log: all that was asked, in order.
        shares: the partitions of the topic.
        leaders: node and leader epoch by partition.
        nodes: the ports of the nodes; a node is refused by taking it out.
        connects: the nodes that were connected to, in order.
        io: called before and after each send, receive and connect of the client.
    """

    topic = "orders"
    topic_id = UUID("00112233-4455-6677-8899-aabbccddeeff")

    def __init__(self, count: int = 0, *, partitions: int = 1, nodes: int = 1):
        self.answers: dict[int, Answer] = {
            key: getattr(self, name) for key, name in APIS.items()
        }
        self.served = dict(SERVED)
        self.log: list[Asked] = []
        self.shares = [Share() for _ in range(partitions)]
        self.leaders = {
            partition: (1 + partition % nodes, 0) for partition in range(partitions)
        }
        self.nodes = {node: 9090 + node for node in range(1, 1 + nodes)}
        self.connects: list[int] = []
        self.streams: list[BrokerStream] = []
        self.exists = True
        self.configs = {"share.delivery.count.limit": "5"}
        self.member_epoch = 0
        self.delivered: list[tuple[int, int, int]] = []
        self.io: Callable[[], None] = lambda: None
        self._changed = anyio.Event()
        self.produce(*(b"%d" % i for i in range(count)))

    def produce(self, *values: bytes, partition: int = 0) -> None:
        self.shares[partition].records += [Held(value) for value in values]
        self.wake()

    def wake(self) -> None:
        """Something happened that parked fetches wait for."""
        self._changed.set()
        self._changed = anyio.Event()

    async def happening(self, until: float) -> None:
        with anyio.CancelScope(deadline=until):
            await self._changed.wait()

    # Results for tests.

    def asked(self, key: int, since: float = -math.inf) -> list[Asked]:
        return [asked for asked in self.log if asked.key == key and asked.at >= since]

    def busiest_second(self) -> int:
        """The most requests of one kind in any second."""
        seconds = Counter((asked.key, int(asked.at)) for asked in self.log)
        return max(seconds.values(), default=0)

    def states(self, partition: int = 0) -> list[State]:
        return [record.state for record in self.shares[partition].records]

    @property
    def accepted(self) -> list[int]:
        """The offsets of partition 0 that were accepted."""
        states = enumerate(self.states())
        return [offset for offset, state in states if state is State.ACKNOWLEDGED]

    @property
    def open(self) -> int:
        return sum(not stream.closed for stream in self.streams)

    # The network.

    async def connect(self, endpoint: Any) -> StreamTransport:
        self.io()
        await anyio.sleep(LATENCY)
        nodes = {port: node for node, port in self.nodes.items()}
        node = nodes.get(endpoint.port, NO_NODE)
        self.connects.append(node)
        if node == NO_NODE:
            raise ConnectionRefusedError(111, "Connection refused")
        stream = BrokerStream(self, node)
        self.streams.append(stream)
        self.io()
        return StreamTransport(stream)

    def cut(self, node: int | None = None) -> None:
        """End the connections to a node, or to all."""
        for stream in self.streams:
            if node in (None, stream.node):
                stream.end()

    def hang_up(self, stream: "BrokerStream") -> None:
        """End a connection, after the answer that is on its way."""
        stream.last = True

    # Answers as a broker gives them.

    def api_versions(self, asked: Asked) -> Any:
        v = asked.schema
        return v.ApiVersionsResponse(
            error_code=ErrorCode.none,
            api_keys=tuple(
                v.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
                for key, (lowest, highest) in self.served.items()
            ),
            throttle_time=NO_TIME,
        )

    def describe_configs(self, asked: Asked) -> Any:
        v = asked.schema
        (resource,) = asked.request.resources
        configs = [
            v.DescribeConfigsResourceResult(
                name=name,
                value=self.configs[name],
                read_only=False,
                is_sensitive=False,
                synonyms=(),
                documentation=None,
            )
            for name in resource.configuration_keys
            if name in self.configs
        ]
        return response_with(asked, ErrorCode.none, configs=tuple(configs))

    def incremental_alter_configs(self, asked: Asked) -> Any:
        (resource,) = asked.request.resources
        self.configs |= {config.name: config.value for config in resource.configs}
        return response_with(asked, ErrorCode.none)

    def find_coordinator(self, asked: Asked) -> Any:
        node = min(self.nodes)
        return response_with(asked, ErrorCode.none, node_id=node, port=self.nodes[node])

    def metadata(self, asked: Asked) -> Any:
        v = asked.schema
        topics = []
        for topic in asked.request.topics:
            known = topic.name == self.topic or topic.topic_id == self.topic_id
            if known and self.exists:
                topics.append(self.description(v))
            else:
                topics.append(
                    v.MetadataResponseTopic(
                        error_code=ErrorCode.unknown_topic_or_partition,
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=(),
                    )
                )
        return self.metadata_of(v, *topics)

    def metadata_of(self, v: Any, *topics: Any) -> Any:
        code = {"error_code": ErrorCode.none} if v.__name__.count("v13") else {}
        return v.MetadataResponse(
            throttle_time=NO_TIME,
            brokers=tuple(
                v.MetadataResponseBroker(node_id=node, host="broker", port=port)
                for node, port in self.nodes.items()
            ),
            topics=topics,
            **code,
        )

    def description(self, v: Any, **changes: Any) -> Any:
        parts = {
            "error_code": ErrorCode.none,
            "name": self.topic,
            "topic_id": self.topic_id,
            "partitions": tuple(
                v.MetadataResponsePartition(
                    error_code=ErrorCode.none,
                    partition_index=partition,
                    leader_id=leader,
                    leader_epoch=epoch,
                )
                for partition, (leader, epoch) in self.leaders.items()
            ),
        }
        return v.MetadataResponseTopic(**(parts | changes))

    def share_group_heartbeat(self, asked: Asked) -> Any:
        v = asked.schema
        request = asked.request
        if request.member_epoch == -1:
            self.member_epoch = 0
            return response_with(asked, ErrorCode.none, member_epoch=-1)
        if request.member_epoch not in (0, self.member_epoch):
            return response_with(asked, ErrorCode.fenced_member_epoch)
        assignment = None
        if request.member_epoch == 0 or request.subscribed_topic_names is not None:
            self.member_epoch += 1
            wanted = self.topic in (request.subscribed_topic_names or ())
            partitions = range(len(self.shares)) if wanted and self.exists else ()
            assigned = v.TopicPartitions(
                topic_id=self.topic_id, partitions=tuple(partitions)
            )
            assignment = v.Assignment(topic_partitions=(assigned,))
        return response_with(
            asked,
            ErrorCode.none,
            member_epoch=self.member_epoch,
            assignment=assignment,
        )

    def share_fetch(self, asked: Asked) -> Any:
        request, stream = asked.request, asked.stream
        error = self._session(asked)
        if error is not ErrorCode.none:
            return response_with(asked, error)
        session = stream.session
        ack_errors = self._acknowledge(request.topics, session)
        for topic in request.topics:
            session.partitions |= {
                (topic.topic_id, part.partition_index) for part in topic.partitions
            }
        for topic in request.forgotten_topics_data:
            session.partitions -= {(topic.topic_id, part) for part in topic.partitions}
        if request.share_session_epoch == -1:
            self._close_session(stream)
            return self.fetched(asked, ack_errors, {})
        until = anyio.current_time() + request.max_wait.total_seconds()
        return self._fetch(asked, ack_errors, until)

    def _fetch(
        self, asked: Asked, ack_errors: dict[Any, ErrorCode], until: float
    ) -> Any:
        request, session = asked.request, asked.stream.session
        acquired: dict[Any, Any] = {}
        for place in sorted(session.partitions):
            topic_id, partition = place
            share = self.shares[partition]
            if topic_id == self.topic_id and request.max_bytes:
                whole = not getattr(request, "share_acquire_mode", 0)
                limit = len(share.records) if whole else request.max_records
                acquired[place] = share.acquire(limit, session.member)
        if any(acquired.values()) or ack_errors or anyio.current_time() >= until:
            for (_, partition), ranges in acquired.items():
                self.delivered += [
                    (partition, offset, count)
                    for first, last, count in ranges
                    for offset in range(first, last + 1)
                ]
            return self.fetched(asked, ack_errors, acquired)
        return Parked(until, partial(self._fetch, asked, ack_errors, until))

    def fetched(
        self, asked: Asked, ack_errors: dict[Any, ErrorCode], acquired: Any
    ) -> Any:
        v = asked.schema
        leader = v.LeaderIdAndEpoch(leader_id=NO_NODE, leader_epoch=NO_NODE)
        places = sorted(
            ack_errors.keys() | {p for p, ranges in acquired.items() if ranges}
        )
        topics = [
            v.ShareFetchableTopicResponse(
                topic_id=topic_id,
                partitions=(
                    v.PartitionData(
                        partition_index=partition,
                        error_code=ErrorCode.none,
                        acknowledge_error_code=ack_errors.get(
                            place, ErrorCode.none
                        ).value,
                        current_leader=leader,
                        records=self.shares[partition].payload(acquired.get(place, [])),
                        acquired_records=tuple(
                            v.AcquiredRecords(
                                first_offset=first,
                                last_offset=last,
                                delivery_count=count,
                            )
                            for first, last, count in acquired.get(place, ())
                        ),
                    ),
                ),
            )
            for place in places
            for topic_id, partition in [place]
        ]
        return response_with(asked, ErrorCode.none, responses=tuple(topics))

    def fetch_failed(
        self, asked: Asked, code: ErrorCode, *, leader=(NO_NODE, NO_NODE), endpoints=()
    ) -> Any:
        """Every partition of the session has this error."""
        v = asked.schema
        error = self._session(asked)
        if error is not ErrorCode.none:
            return response_with(asked, error)
        for topic in asked.request.topics:
            asked.stream.session.partitions |= {
                (topic.topic_id, part.partition_index) for part in topic.partitions
            }
        partitions = tuple(
            v.PartitionData(
                partition_index=partition,
                error_code=code,
                acknowledge_error_code=0,
                current_leader=v.LeaderIdAndEpoch(
                    leader_id=leader[0], leader_epoch=leader[1]
                ),
                records=b"",
                acquired_records=(),
            )
            for _, partition in sorted(asked.stream.session.partitions)
        )
        topic = v.ShareFetchableTopicResponse(
            topic_id=self.topic_id, partitions=partitions
        )
        nodes = tuple(
            v.NodeEndpoint(node_id=node, host="broker", port=port)
            for node, port in endpoints
        )
        return response_with(
            asked, ErrorCode.none, responses=(topic,), node_endpoints=nodes
        )

    def share_acknowledge(self, asked: Asked) -> Any:
        v = asked.schema
        error = self._session(asked)
        if error is not ErrorCode.none:
            return response_with(asked, error)
        session = asked.stream.session
        ack_errors = self._acknowledge(asked.request.topics, session)
        if asked.request.share_session_epoch == -1:
            self._close_session(asked.stream)
        leader = v.LeaderIdAndEpoch(leader_id=NO_NODE, leader_epoch=NO_NODE)
        topics = tuple(
            v.ShareAcknowledgeTopicResponse(
                topic_id=topic_id,
                partitions=(
                    v.PartitionData(
                        partition_index=partition,
                        error_code=error,
                        current_leader=leader,
                    ),
                ),
            )
            for (topic_id, partition), error in ack_errors.items()
        )
        return response_with(asked, ErrorCode.none, responses=topics)

    # Sessions.

    def _session(self, asked: Asked) -> ErrorCode:
        """Check the request's session epoch, and count it."""
        request, stream = asked.request, asked.stream
        epoch, session = request.share_session_epoch, stream.session
        if epoch == 0 and asked.key == FETCH:
            if any(
                p.acknowledgement_batches for t in request.topics for p in t.partitions
            ):
                return ErrorCode.invalid_request
            stream.session = Session(request.member_id, 1)
        elif session is None:
            return ErrorCode.share_session_not_found
        elif epoch != -1 and epoch != session.epoch:
            return ErrorCode.invalid_share_session_epoch
        else:
            session.epoch += 1
        return ErrorCode.none

    def _acknowledge(self, topics: Any, session: Session) -> dict[Any, ErrorCode]:
        ack_errors = {}
        for topic in topics:
            for part in topic.partitions:
                if part.acknowledgement_batches:
                    share = self.shares[part.partition_index]
                    code = share.acknowledge(
                        part.acknowledgement_batches, session.member
                    )
                    ack_errors[topic.topic_id, part.partition_index] = code
        self.wake()
        return ack_errors

    def _close_session(self, stream: "BrokerStream") -> None:
        session, stream.session = stream.session, None
        if session is not None:
            for _, partition in session.partitions:
                self.shares[partition].session_ended(session.member)
        self.wake()

    def ended(self, stream: "BrokerStream") -> None:
        """A connection is over, from whichever side; so is its session."""
        self._close_session(stream)


class BrokerStream(ByteStream):
    """A connection, as the client has it; the broker is at its other end."""

    def __init__(self, broker: ScriptedBroker, node: int) -> None:
        self.node = node
        self.session: Session | None = None
        self.closed = False
        self.last = False
        self._broker = broker
        self._received = b""
        self._answer: Any = None
        self._due = math.inf
        self._correlation_id = 0
        self._key = 0
        self._data = b""
        self._over = False
        self._news = anyio.Event()

    async def send(self, item: bytes) -> None:
        self._broker.io()
        await anyio.lowlevel.checkpoint()
        if self.closed:
            raise anyio.ClosedResourceError
        if self._over:
            raise anyio.BrokenResourceError
        self._received += item
        length = 4 + int.from_bytes(self._received[:4], "big")
        if len(self._received) >= length:
            frame, self._received = self._received[4:length], self._received[length:]
            self._take(frame)
        self._broker.io()

    def _take(self, frame: bytes) -> None:
        header, size = entity_reader(RequestHeader)(frame, 0)
        key, version = header.request_api_key, header.request_api_version
        name = APIS[key]
        kind = "".join(word.capitalize() for word in name.split("_")) + "Request"
        request, rest = entity_reader(getattr(schema(name, version), kind))(frame, size)
        assert size + rest == len(frame), "bytes after a request"
        assert not self._data, "a request before the last one was answered"
        asked = Asked(anyio.current_time(), key, version, request, self)
        self._broker.log.append(asked)
        self._correlation_id, self._key = header.correlation_id, key
        self._reply(self._broker.answers[key](asked), LATENCY)

    def _reply(self, answer: Any, after: float) -> None:
        if isinstance(answer, Late):
            after, answer = after + answer.seconds, answer.answer
        if answer == SILENCE:
            after = math.inf
        self._answer, self._due = answer, anyio.current_time() + after
        self._changed()

    def _changed(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        self._broker.io()
        await anyio.lowlevel.checkpoint()
        while not self._data:
            if self.closed:
                raise anyio.ClosedResourceError
            if self._over:
                raise anyio.EndOfStream
            await self._wait()
        data, self._data = self._data[:max_bytes], self._data[max_bytes:]
        if self.last:
            self.end()
        self._broker.io()
        return data

    async def _wait(self) -> None:
        """For the answer's time, or for records where a fetch is parked."""
        with anyio.CancelScope(deadline=self._due):
            await self._news.wait()
            return
        if isinstance(self._answer, Parked):
            until, again = self._answer
            await self._broker.happening(until)
            if not self._over:
                self._reply(again(), 0.0)
        elif self._answer == CUT:
            self.end()
        else:
            self._data = self._framed(self._answer)
            self._answer, self._due = None, math.inf

    def _framed(self, answer: Any) -> bytes:
        body = answer if isinstance(answer, bytes) else encode_entity(answer)
        tags = b"" if self._key == VERSIONS else b"\x00"
        content = self._correlation_id.to_bytes(4, "big") + tags + body
        return len(content).to_bytes(4, "big") + content

    def end(self) -> None:
        """The broker's end of it is over."""
        if not self._over:
            self._over = True
            self._broker.ended(self)
            self._changed()

    async def send_eof(self) -> None:
        self.end()

    async def aclose(self) -> None:
        self.closed = True
        self.end()
        await anyio.lowlevel.checkpoint()


# Answers that tests ask for.


def response_with(asked: Asked, code: ErrorCode, **changes: Any) -> Any:
    """Return the API's response with an error code and these fields."""
    v = asked.schema
    throttle = changes.pop("throttle_time", NO_TIME)
    name = APIS[asked.key]
    kind = "".join(word.capitalize() for word in name.split("_")) + "Response"
    parts: dict[str, Any]
    if asked.key == HEARTBEAT:
        parts = {
            "error_code": code,
            "member_id": asked.request.member_id,
            "member_epoch": 0,
            "heartbeat_interval": timedelta(seconds=5),
        }
    elif asked.key in (FETCH, ACKNOWLEDGE):
        parts = {"error_code": code, "responses": (), "node_endpoints": ()}
        if asked.key == FETCH or asked.version >= 2:
            parts["acquisition_lock_timeout"] = timedelta(seconds=30)
    elif asked.key == FIND_COORDINATOR:
        coordinator = {"node_id": NO_NODE, "host": "broker", "port": NO_NODE, **changes}
        (key,) = asked.request.coordinator_keys
        found = v.Coordinator(
            key=key, error_code=code, error_message=None, **coordinator
        )
        parts, changes = {"coordinators": (found,)}, {}
    elif asked.key == METADATA:
        topics = [
            v.MetadataResponseTopic(
                error_code=code, name=t.name, topic_id=t.topic_id, partitions=()
            )
            for t in asked.request.topics
        ]
        parts = {"brokers": (), "topics": tuple(topics)}
        if asked.version >= 13:
            parts["error_code"] = ErrorCode.none
    else:
        (resource,) = asked.request.resources
        result = {
            "error_code": code,
            "error_message": None,
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
        }
        if asked.key == DESCRIBE_CONFIGS:
            result["configs"] = changes.pop("configs", ())
            parts = {"results": (v.DescribeConfigsResult(**result),)}
        else:
            parts = {"responses": (v.AlterConfigsResourceResponse(**result),)}
    return getattr(v, kind)(throttle_time=throttle, **(parts | changes))


def first(count: int, answer: Answer, then: Answer) -> Answer:
    """Answer so many times in one way, then in another."""
    left = count

    def choose(asked: Asked) -> Any:
        nonlocal left
        left -= 1
        return answer(asked) if left >= 0 else then(asked)

    return choose


@asynccontextmanager
async def consuming(broker: ScriptedBroker, *topics: str, within=1000, **options: Any):
    """A consumer of the broker's topic; nothing takes longer than `within` seconds."""
    with anyio.fail_after(within):
        async with ShareConsumer(
            *(topics or (broker.topic,)),
            group_id="billing",
            bootstrap_servers="broker:9091",
            network=broker,
            **options,
        ) as consumer:
            yield consumer
