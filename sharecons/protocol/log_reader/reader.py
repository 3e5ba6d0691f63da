"""Reading ranges of logs once more, by plain Fetch: whom to ask for what, and when.

Rule 1: what is asked for next, and what an error leads to, is decided here.
Rule 2: this file decodes nothing: batches are handed on as they came.

Theory of operation
-------------------
Topics go by their ids: names may mean other topics by now. Metadata tells leaders;
each is asked for all that is wanted of it, in one request at a time. An answer moves
the cursors at once, so that the next request leaves while its batches are decoded.

A broker fills an answer in the order of the request, so who got nothing goes first the
next time. Only when nobody got anything is that trouble: then, as after an error, each
is asked again after its backoff, of a leader that Metadata names anew. Trouble that
lasts longer than `timeout` ends the reading.

What the log does not have any more is `Lost`, and passed over: it is not decided here
whether that is an error. An offset out of range says not on which side; where the log
begins does. A topic that Metadata does not know is given TOPIC_PATIENCE seconds, since
a broker that has just started may know none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthorizationError,
    Error,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.protocol.admin.models import LogOffset, OffsetSpec
from sharecons.protocol.admin.requests import ListLogOffsets, Reply
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.log_reader.cursor import Cursor, Span
from sharecons.protocol.log_reader.messages import (
    Fetch,
    Fetched,
    FetchedFrom,
    FetchFrom,
)
from sharecons.protocol.messages import (
    DescribeTopics,
    Endpoint,
    SharePartition,
    TopicDescription,
    TopicId,
    TopicsDescribed,
)
from sharecons.records.columns_reader import next_offset

__all__ = ["FetchedSlice", "Happened", "LogReader", "LostRange", "NodeRequest"]

NEVER: Final = float("inf")

MAX_WAIT: Final = 0.5  # fetch.max.wait.ms
MAX_BYTES: Final = 8 << 20

TOPIC_PATIENCE: Final = 10.0
FEWEST_TRIES: Final = 3
"""However long it took: whoever reads may be slow to take what came."""

_GONE: Final = (Code.UNKNOWN_TOPIC_ID, Code.UNKNOWN_TOPIC_OR_PARTITION)

OffsetsListed = Mapping[TopicPartition, Reply[LogOffset]]

Request = Fetch | ListLogOffsets | DescribeTopics
Answer = Fetched | OffsetsListed | TopicsDescribed


class NodeRequest(NamedTuple):
    """A request for a node, or for any broker if that is None."""

    node_id: int | None
    request: Request


class FetchedSlice(NamedTuple):
    """Batches of a partition, and what is wanted out of them."""

    share_partition: SharePartition
    spans: Sequence[Span]
    records: memoryview
    aborted: tuple[tuple[int, int], ...]


class LostRange(NamedTuple):
    """Offsets that were wanted and cannot be read any more, the last one included."""

    share_partition: SharePartition
    first_offset: int
    last_offset: int
    why: str


Happened = FetchedSlice | LostRange


class LogReader:
    """The machine; as others, but it may have a request under way at each node.

    Attributes:
        brokers: the endpoints of the cluster's brokers, by node id.
        error: why nothing more can be read.
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
        # In the order in which they are asked for.
        self._cursors = {p: Cursor(p, s, spread) for p, s in wanted.items() if s}
        self._busy: set[int | None] = set()
        self._describe_at = 0.0

    @property
    def finished(self) -> bool:
        return self.error is not None or not self._cursors

    # What is asked.

    def next_requests(self, now: float) -> list[NodeRequest]:
        """Give what to send now; each is to be `answered`, or `failed`."""
        if self.finished:
            return []
        asks = [*self._next_description(now), *self._next_by_node(now)]
        self._busy.update(ask.node_id for ask in asks)
        return asks

    def next_deadline(self, now: float) -> float:
        """When to ask for requests again, if nothing happens before."""
        if self.finished:
            return NEVER
        times = [
            cursor.due
            for cursor in self._cursors.values()
            if cursor.leader is not None and cursor.leader.leader_id not in self._busy
        ]
        if None not in self._busy and self._unled():
            times.append(self._describe_at)
        return min(times, default=NEVER)

    def _next_description(self, now: float) -> Iterator[NodeRequest]:
        unled = self._unled()
        if unled and None not in self._busy and now >= self._describe_at:
            ids = dict.fromkeys(cursor.place.topic_id for cursor in unled)
            yield NodeRequest(None, DescribeTopics(names=(), ids=tuple(sorted(ids))))

    def _next_by_node(self, now: float) -> Iterator[NodeRequest]:
        led: dict[int, list[Cursor]] = {}
        for cursor in self._cursors.values():
            if cursor.leader is not None and cursor.due <= now:
                led.setdefault(cursor.leader.leader_id, []).append(cursor)
        for node_id, cursors in led.items():
            if node_id not in self._busy:
                astray = [cursor for cursor in cursors if cursor.astray]
                yield NodeRequest(
                    node_id, self._lookup(astray) if astray else self._fetch(cursors)
                )

    def _fetch(self, cursors: Iterable[Cursor]) -> Fetch:
        partitions: dict[SharePartition, FetchFrom] = {}
        room = MAX_BYTES
        for cursor in cursors:
            if room <= 0:
                break
            epoch = -1 if cursor.leader is None else cursor.leader.leader_epoch
            max_bytes = cursor.max_bytes()
            partitions[cursor.place] = FetchFrom(epoch, cursor.offset, max_bytes)
            room -= max_bytes
        return Fetch(
            max_wait=MAX_WAIT,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            committed=self._committed,
            partitions=partitions,
        )

    def _lookup(self, cursors: Iterable[Cursor]) -> ListLogOffsets:
        places = sorted(cursor.place for cursor in cursors)
        return ListLogOffsets(
            specs=dict.fromkeys(map(self._named, places), OffsetSpec.EARLIEST),
            read_committed=False,
        )

    def _unled(self) -> list[Cursor]:
        return [c for c in self._cursors.values() if c.leader is None]

    # What came.

    def answered(self, ask: NodeRequest, answer: Answer, now: float) -> list[Happened]:
        self._busy.discard(ask.node_id)
        match answer:
            case Fetched():
                assert isinstance(ask.request, Fetch), "what was asked"
                happened = self._fetched(ask.request, answer, now)
            case TopicsDescribed():
                assert isinstance(ask.request, DescribeTopics), "what was asked"
                happened = self._described(ask.request, answer, now)
            case _:
                assert isinstance(ask.request, ListLogOffsets), "what was asked"
                happened = self._listed(ask.request, answer, now)
        self._cursors = {p: c for p, c in self._cursors.items() if not c.finished}
        return happened

    def failed(self, ask: NodeRequest, error: Error, now: float) -> None:
        """A request got no answer: the node may be gone, and others lead."""
        self._busy.discard(ask.node_id)
        if isinstance(error, UnsupportedVersionError):
            self.error = error
            return
        for cursor in self._asked(ask.request):
            self._troubled(cursor, str(error), now)

    def _asked(self, request: Request) -> list[Cursor]:
        match request:
            case Fetch():
                places: Iterable[SharePartition] = request.partitions
            case ListLogOffsets():
                places = self._looked_up(request)
            case DescribeTopics():
                places = [c.place for c in self._unled()]
        return [self._cursors[place] for place in places if place in self._cursors]

    def _looked_up(self, request: ListLogOffsets) -> list[SharePartition]:
        return [
            place
            for place, cursor in self._cursors.items()
            if cursor.astray and self._named(place) in request.specs
        ]

    # Records.

    def _fetched(self, request: Fetch, answer: Fetched, now: float) -> list[Happened]:
        told = {each.share_partition: each for each in answer.partitions}
        pieces: list[Happened] = []
        idle: list[Cursor] = []
        for cursor in self._asked(request):
            got = told.get(cursor.place)
            code = answer.error or (Code.NONE if got is None else got.error)
            if code != Code.NONE:
                self._refused(cursor, code, now)
            elif got is None or not self._read(cursor, got, pieces):
                idle.append(cursor)
        if not pieces:
            for cursor in idle:
                self._troubled(cursor, "the log brings nothing there", now, moved=False)
        return pieces

    def _read(self, cursor: Cursor, got: FetchedFrom, pieces: list[Happened]) -> bool:
        after = next_offset(got.records, cursor.offset)
        if after <= cursor.offset:
            return False
        spans = cursor.read(after, len(got.records))
        pieces.append(FetchedSlice(cursor.place, spans, got.records, got.aborted))
        self._cursors[cursor.place] = self._cursors.pop(cursor.place)  # goes last
        return True

    def _refused(self, cursor: Cursor, code: int, now: float) -> None:
        if code == Code.OFFSET_OUT_OF_RANGE:
            cursor.astray = True
        elif code == Code.TOPIC_AUTHORIZATION_FAILED:
            self._forbidden(cursor.place, code)
        else:
            self._troubled(cursor, code_name(code), now)

    # Where the log begins.

    def _listed(
        self, request: ListLogOffsets, answer: OffsetsListed, now: float
    ) -> list[Happened]:
        lost: list[Happened] = []
        for place in self._looked_up(request):
            cursor = self._cursors[place]
            cursor.astray = False
            begin, code = _begin(answer.get(self._named(place)))
            if begin is None:
                self._troubled(cursor, f"ListOffsets: {code_name(code)}", now)
            elif begin > cursor.offset:
                why = f"the log begins at {begin}: retention removed what was before"
                lost.append(LostRange(place, *cursor.lose(begin), why))
            else:
                lost += self._found_beyond(cursor, now)
        return lost

    def _found_beyond(self, cursor: Cursor, now: float) -> list[Happened]:
        """The offset lies behind the log's end, as far as this leader knows."""
        cursor.beyond += 1
        if cursor.beyond < FEWEST_TRIES:
            self._troubled(cursor, "the offset is beyond the log's end", now)
            return []
        why = "the log ends before: an unclean election cut it off"
        return [LostRange(cursor.place, *cursor.lose(None), why)]

    # Leaders.

    def _described(
        self, request: DescribeTopics, answer: TopicsDescribed, now: float
    ) -> list[Happened]:
        if answer.brokers:
            self.brokers = dict(answer.brokers)
        told = {topic.topic_id: topic for topic in answer.topics}
        lost: list[Happened] = []
        for cursor in self._unled():
            if cursor.place.topic_id in request.ids:
                topic = told.get(cursor.place.topic_id)
                lost += self._placed(cursor, topic, now)
        return lost

    def _placed(
        self, cursor: Cursor, topic: TopicDescription | None, now: float
    ) -> list[Happened]:
        code = Code.UNKNOWN_TOPIC_ID if topic is None else topic.error
        if code in _GONE:
            return self._missing(cursor, code, now)
        if code == Code.TOPIC_AUTHORIZATION_FAILED:
            self._forbidden(cursor.place, code)
        elif code != Code.NONE or topic is None:
            self._troubled(cursor, f"Metadata: {code_name(code)}", now)
        else:
            cursor.gone_since = None
            leader = topic.leaders.get(cursor.place.partition)
            if leader is None or leader.leader_id not in self.brokers:
                self._troubled(cursor, "nobody leads it", now)
            else:
                cursor.leader = leader
        return []

    def _missing(self, cursor: Cursor, code: int, now: float) -> list[Happened]:
        if cursor.gone_since is None:
            cursor.gone_since = now
        if now - cursor.gone_since < TOPIC_PATIENCE:
            self._troubled(cursor, f"Metadata: {code_name(code)}", now)
            return []
        why = "the topic was deleted (one of that name is another, if there is one)"
        return [LostRange(cursor.place, *cursor.lose(None), why)]

    # Trouble.

    def _troubled(
        self, cursor: Cursor, why: str, now: float, *, moved: bool = True
    ) -> None:
        trouble = cursor.troubled(why, now)
        if moved:
            cursor.leader = None
            self._describe_at = max(self._describe_at, cursor.due)
        if now - trouble.since >= self._timeout and trouble.tries >= FEWEST_TRIES:
            self.error = RequestTimedOutError(
                f"{self._name(cursor.place)}: offset {cursor.offset} could not be read "
                f"for {now - trouble.since:.0f} s, {trouble.tries} times; the last "
                f"time: {why}"
            )

    def _forbidden(self, place: SharePartition, code: int) -> None:
        name = code_name(code)
        text = f"{self._name(place)}: {name}; the principal needs READ on the topic"
        self.error = AuthorizationError(text, code=code, name=name)

    def _name(self, place: SharePartition) -> str:
        return f"{self._names[place.topic_id]}-{place.partition}"

    def _named(self, place: SharePartition) -> TopicPartition:
        return TopicPartition(self._names[place.topic_id], place.partition)


def _begin(reply: Reply[LogOffset] | None) -> tuple[int | None, int]:
    """Give where a log begins; if that was not told, None and the error code."""
    if reply is None or reply.value is None:
        return None, Code.UNKNOWN_SERVER_ERROR
    if reply.code != Code.NONE:
        return None, reply.code
    return reply.value.offset, Code.UNKNOWN_SERVER_ERROR
