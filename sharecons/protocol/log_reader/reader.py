"""A reader of offset ranges by plain Fetch: which request to send, where, and when.

Rule 1: the next requests, and the reaction to each error, are decided here.
Rule 2: nothing is decoded here: batches are passed on as received.

Theory of operation
-------------------
Topics are identified by id, as a name can mean another topic by now. Metadata returns
the leaders; each has one request in flight, for all ranges that it leads. A response
moves the cursors immediately, so that the next request is sent while its batches are
decoded.

A broker fills a response in the order of the request, so partitions that got nothing go
first in the next request. A response without any batch counts as a failure. After a
failure, the partition is fetched again after its backoff; after an error, its leader is
first looked up with Metadata. Failures that last longer than `timeout` end the reader.

Offsets that the log no longer has are returned as `LostRange` and skipped; the caller
decides whether that is an error. OFFSET_OUT_OF_RANGE does not say on which side, so the
log's start is looked up. A topic unknown to Metadata counts as deleted after
UNKNOWN_TOPIC_TIMEOUT seconds, since a broker that has just started might know no topic.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthenticationError,
    AuthorizationError,
    Error,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.protocol.admin.models import LogOffset, OffsetSpec
from sharecons.protocol.admin.requests import ListOffsets, Reply
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.group.messages import (
    MetadataRequest,
    MetadataResponse,
    TopicDescription,
)
from sharecons.protocol.log_reader.cursor import Cursor, Span
from sharecons.protocol.log_reader.messages import (
    Fetch,
    Fetched,
    FetchedPartition,
    FetchPosition,
)
from sharecons.protocol.partitions import Endpoint, SharePartition, TopicId
from sharecons.records.columns_reader import next_offset

__all__ = ["FetchedSlice", "LogReader", "LostRange", "NodeRequest", "ReadEvent"]

NEVER: Final = float("inf")

MAX_WAIT: Final = 0.5  # fetch.max.wait.ms
MAX_BYTES: Final = 8 << 20

UNKNOWN_TOPIC_TIMEOUT: Final = 10.0
MIN_TRIES: Final = 3
"""Minimum of tries before a failure: the caller can be slow to take responses."""

_UNKNOWN_TOPIC: Final = (Code.UNKNOWN_TOPIC_ID, Code.UNKNOWN_TOPIC_OR_PARTITION)

OffsetsListed = Mapping[TopicPartition, Reply[LogOffset]]

Request = Fetch | ListOffsets | MetadataRequest
Response = Fetched | OffsetsListed | MetadataResponse


class NodeRequest(NamedTuple):
    """A request to a node; None is any broker."""

    node_id: int | None
    request: Request


class FetchedSlice(NamedTuple):
    """Batches of a partition, and the requested ranges within them."""

    share_partition: SharePartition
    spans: Sequence[Span]
    records: memoryview
    aborted: tuple[tuple[int, int], ...]


class LostRange(NamedTuple):
    """Requested offsets that can no longer be read; both ends included."""

    share_partition: SharePartition
    first_offset: int
    last_offset: int
    reason: str


ReadEvent = FetchedSlice | LostRange


class LogReader:
    """A state machine like `Leader`, with up to one request in flight per node.

    Attributes:
        brokers: the endpoints of the cluster's brokers, by node id.
        error: the reason why nothing more can be read, or None.
    """

    def __init__(
        self,
        wanted: Mapping[SharePartition, Sequence[Span]],
        names: Mapping[TopicId, str],
        *,
        committed: bool,
        timeout: float,
        spread: float = 1.0,
    ) -> None:
        self.brokers: Mapping[int, Endpoint] = {}
        self.error: Error | None = None
        self._names = names
        self._committed = committed
        self._timeout = timeout
        # In the order of the next request.
        self._cursors = {p: Cursor(p, s, spread) for p, s in wanted.items() if s}
        self._busy: set[int | None] = set()
        self._describe_at = 0.0

    @property
    def finished(self) -> bool:
        return self.error is not None or not self._cursors

    # Requests.

    def next_requests(self, now: float) -> list[NodeRequest]:
        """Return the requests to send now; `on_response` or `on_error` ends each."""
        if self.finished:
            return []
        requests = [*self._next_description(now), *self._next_by_node(now)]
        self._busy.update(request.node_id for request in requests)
        return requests

    def next_deadline(self, now: float) -> float:
        """Return when to call `next_requests` again if no response comes before."""
        if self.finished:
            return NEVER
        times = [
            cursor.not_before
            for cursor in self._cursors.values()
            if cursor.leader is not None and cursor.leader.leader_id not in self._busy
        ]
        if None not in self._busy and self._leaderless():
            times.append(self._describe_at)
        return min(times, default=NEVER)

    def _next_description(self, now: float) -> Iterator[NodeRequest]:
        leaderless = self._leaderless()
        if leaderless and None not in self._busy and now >= self._describe_at:
            ids = dict.fromkeys(
                cursor.share_partition.topic_id for cursor in leaderless
            )
            yield NodeRequest(None, MetadataRequest(names=(), ids=tuple(sorted(ids))))

    def _next_by_node(self, now: float) -> Iterator[NodeRequest]:
        by_leader: dict[int, list[Cursor]] = {}
        for cursor in self._cursors.values():
            if cursor.leader is not None and cursor.not_before <= now:
                by_leader.setdefault(cursor.leader.leader_id, []).append(cursor)
        for node_id, cursors in by_leader.items():
            if node_id not in self._busy:
                lost = [cursor for cursor in cursors if cursor.out_of_range]
                request = self._list_offsets(lost) if lost else self._fetch(cursors)
                yield NodeRequest(node_id, request)

    def _fetch(self, cursors: Iterable[Cursor]) -> Fetch:
        partitions: dict[SharePartition, FetchPosition] = {}
        room = MAX_BYTES
        for cursor in cursors:
            if room <= 0:
                break
            epoch = -1 if cursor.leader is None else cursor.leader.leader_epoch
            max_bytes = cursor.max_bytes()
            position = FetchPosition(epoch, cursor.offset, max_bytes)
            partitions[cursor.share_partition] = position
            room -= max_bytes
        return Fetch(
            max_wait=MAX_WAIT,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            committed=self._committed,
            partitions=partitions,
        )

    def _list_offsets(self, cursors: Iterable[Cursor]) -> ListOffsets:
        keys = sorted(cursor.share_partition for cursor in cursors)
        specs = dict.fromkeys(map(self._topic_partition, keys), OffsetSpec.EARLIEST)
        return ListOffsets(specs=specs, read_committed=False)

    def _leaderless(self) -> list[Cursor]:
        return [c for c in self._cursors.values() if c.leader is None]

    # Responses.

    def on_response(
        self, request: NodeRequest, response: Response, now: float
    ) -> list[ReadEvent]:
        self._busy.discard(request.node_id)
        match response:
            case Fetched():
                assert isinstance(request.request, Fetch)
                events = self._on_fetched(request.request, response, now)
            case MetadataResponse():
                assert isinstance(request.request, MetadataRequest)
                events = self._on_topics(request.request, response, now)
            case _:
                assert isinstance(request.request, ListOffsets)
                events = self._on_offsets(request.request, response, now)
        self._cursors = {p: c for p, c in self._cursors.items() if not c.finished}
        return events

    def on_error(self, request: NodeRequest, error: Error, now: float) -> None:
        """Handle a request without a response: look up leaders again."""
        self._busy.discard(request.node_id)
        if isinstance(error, AuthenticationError | UnsupportedVersionError):
            self.error = error
            return
        for cursor in self._cursors_of(request.request):
            self._on_failure(cursor, str(error), now)

    def _cursors_of(self, request: Request) -> list[Cursor]:
        match request:
            case Fetch():
                keys: Iterable[SharePartition] = request.partitions
            case ListOffsets():
                keys = self._out_of_range(request)
            case MetadataRequest():
                keys = [c.share_partition for c in self._leaderless()]
        return [self._cursors[key] for key in keys if key in self._cursors]

    def _out_of_range(self, request: ListOffsets) -> list[SharePartition]:
        return [
            key
            for key, cursor in self._cursors.items()
            if cursor.out_of_range and self._topic_partition(key) in request.specs
        ]

    # Records.

    def _on_fetched(
        self, request: Fetch, response: Fetched, now: float
    ) -> list[ReadEvent]:
        parts = {each.share_partition: each for each in response.partitions}
        events: list[ReadEvent] = []
        idle: list[Cursor] = []
        for cursor in self._cursors_of(request):
            part = parts.get(cursor.share_partition)
            code = response.error or (Code.NONE if part is None else part.error)
            if code != Code.NONE:
                self._on_fetch_error(cursor, code, now)
            elif part is None or not self._advance(cursor, part, events):
                idle.append(cursor)
        if not events:
            for cursor in idle:
                self._on_failure(
                    cursor, "the response has no batch", now, look_up_leader=False
                )
        return events

    def _advance(
        self, cursor: Cursor, part: FetchedPartition, events: list[ReadEvent]
    ) -> bool:
        after = next_offset(part.records, cursor.offset)
        if after <= cursor.offset:
            return False
        spans = cursor.advance(after, len(part.records))
        key = cursor.share_partition
        events.append(FetchedSlice(key, spans, part.records, part.aborted))
        self._cursors[key] = self._cursors.pop(key)  # to the end of the order
        return True

    def _on_fetch_error(self, cursor: Cursor, code: int, now: float) -> None:
        if code == Code.OFFSET_OUT_OF_RANGE:
            cursor.out_of_range = True
        elif code == Code.TOPIC_AUTHORIZATION_FAILED:
            self._on_forbidden(cursor.share_partition, code)
        else:
            self._on_failure(cursor, code_name(code), now)

    # The start of the log.

    def _on_offsets(
        self, request: ListOffsets, response: OffsetsListed, now: float
    ) -> list[ReadEvent]:
        lost: list[ReadEvent] = []
        for key in self._out_of_range(request):
            cursor = self._cursors[key]
            cursor.out_of_range = False
            start, code = _log_start(response.get(self._topic_partition(key)))
            if start is None:
                self._on_failure(cursor, f"ListOffsets: {code_name(code)}", now)
            elif start > cursor.offset:
                reason = f"retention removed them; the log now starts at {start}"
                lost.append(LostRange(key, *cursor.skip(start), reason))
            else:
                lost += self._on_beyond_end(cursor, now)
        return lost

    def _on_beyond_end(self, cursor: Cursor, now: float) -> list[ReadEvent]:
        """Handle an offset beyond the log's end, as far as this leader knows."""
        cursor.beyond_end += 1
        if cursor.beyond_end < MIN_TRIES:
            self._on_failure(cursor, "the offset is beyond the log's end", now)
            return []
        reason = "the log ends before them: an unclean leader election truncated it"
        return [LostRange(cursor.share_partition, *cursor.skip(None), reason)]

    # Leaders.

    def _on_topics(
        self, request: MetadataRequest, response: MetadataResponse, now: float
    ) -> list[ReadEvent]:
        if response.brokers:
            self.brokers = dict(response.brokers)
        topics = {topic.topic_id: topic for topic in response.topics}
        lost: list[ReadEvent] = []
        for cursor in self._leaderless():
            if cursor.share_partition.topic_id in request.ids:
                topic = topics.get(cursor.share_partition.topic_id)
                lost += self._on_topic(cursor, topic, now)
        return lost

    def _on_topic(
        self, cursor: Cursor, topic: TopicDescription | None, now: float
    ) -> list[ReadEvent]:
        code = Code.UNKNOWN_TOPIC_ID if topic is None else topic.error
        if code in _UNKNOWN_TOPIC:
            return self._on_unknown_topic(cursor, code, now)
        if code == Code.TOPIC_AUTHORIZATION_FAILED:
            self._on_forbidden(cursor.share_partition, code)
        elif code != Code.NONE or topic is None:
            self._on_failure(cursor, f"Metadata: {code_name(code)}", now)
        else:
            cursor.unknown_since = None
            leader = topic.leaders.get(cursor.share_partition.partition)
            if leader is None or leader.leader_id not in self.brokers:
                self._on_failure(cursor, "it has no leader", now)
            else:
                cursor.leader = leader
        return []

    def _on_unknown_topic(
        self, cursor: Cursor, code: int, now: float
    ) -> list[ReadEvent]:
        if cursor.unknown_since is None:
            cursor.unknown_since = now
        if now - cursor.unknown_since < UNKNOWN_TOPIC_TIMEOUT:
            self._on_failure(cursor, f"Metadata: {code_name(code)}", now)
            return []
        reason = "the topic was deleted (a topic of that name is a new one)"
        return [LostRange(cursor.share_partition, *cursor.skip(None), reason)]

    # Failures.

    def _on_failure(
        self, cursor: Cursor, reason: str, now: float, *, look_up_leader: bool = True
    ) -> None:
        failures = cursor.on_failure(reason, now)
        if look_up_leader:
            cursor.leader = None
            self._describe_at = max(self._describe_at, cursor.not_before)
        if now - failures.since >= self._timeout and failures.tries >= MIN_TRIES:
            self.error = RequestTimedOutError(
                f"{self._label(cursor.share_partition)}: reading offset "
                f"{cursor.offset} failed {failures.tries} times in "
                f"{now - failures.since:.0f} s; last error: {reason}"
            )

    def _on_forbidden(self, share_partition: SharePartition, code: int) -> None:
        name = code_name(code)
        label = self._label(share_partition)
        text = f"{label}: {name}; the principal needs READ on the topic"
        self.error = AuthorizationError(text, code=code, name=name)

    def _label(self, key: SharePartition) -> str:
        return f"{self._names[key.topic_id]}-{key.partition}"

    def _topic_partition(self, key: SharePartition) -> TopicPartition:
        return TopicPartition(self._names[key.topic_id], key.partition)


def _log_start(reply: Reply[LogOffset] | None) -> tuple[int | None, int]:
    """Return the start of a log, or None and an error code."""
    if reply is None or reply.value is None:
        return None, Code.UNKNOWN_SERVER_ERROR
    if reply.code != Code.NONE:
        return None, reply.code
    return reply.value.offset, Code.UNKNOWN_SERVER_ERROR
