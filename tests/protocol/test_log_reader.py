"""The log reader, with simulated logs."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthenticationError,
    AuthorizationError,
    ConnectionFailedError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.protocol.admin.models import LogOffset
from sharecons.protocol.admin.requests import ListOffsets, Reply
from sharecons.protocol.codes import Code
from sharecons.protocol.group.messages import (
    MetadataRequest,
    MetadataResponse,
    TopicDescription,
)
from sharecons.protocol.log_reader.messages import Fetch, Fetched, FetchedPartition
from sharecons.protocol.log_reader.reader import (
    MAX_BYTES,
    UNKNOWN_TOPIC_TIMEOUT,
    LogReader,
    LostRange,
    NodeRequest,
)
from sharecons.protocol.partitions import Endpoint, PartitionLeader, SharePartition
from sharecons.records.columns_reader import next_offset
from sharecons.records.encoder import NewRecord, encode

T, U = b"t" * 16, b"u" * 16
NAMES = {T: "t", U: "u"}
FIRST, SECOND = SharePartition(T, 0), SharePartition(T, 1)
HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)
BROKERS = {1: Endpoint("one", 1), 2: Endpoint("two", 2)}


def new_reader(*requested, timeout=30.0):
    spans = {partition: [(first, last, 1)] for partition, first, last in requested}
    return LogReader(spans, NAMES, committed=False, timeout=timeout)


def described(leaders, *, topic_id=T, error=0, brokers=BROKERS):
    """Return a Metadata response; `leaders` has the node of each partition."""
    topic = TopicDescription(
        error=error,
        name=None if error else NAMES[topic_id],
        topic_id=topic_id,
        leaders={p: PartitionLeader(node, 5) for p, node in leaders.items()},
    )
    return MetadataResponse(brokers=brokers, topics=(topic,))


def batch(first, count):
    return encode([NewRecord()] * count, base_offset=first)


def part(partition, records=b"", error=0):
    return FetchedPartition(partition, error, 1000, 0, (), memoryview(records))


def fetched(*parts, error=0):
    return Fetched(error=error, partitions=parts, throttle=0.0)


def reader_with_leaders(*requested, leaders=None, **options):
    """Return a reader that knows its leaders; node 1 by default."""
    reader = new_reader(*requested, **options)
    (request,) = reader.next_requests(0.0)
    where = leaders or {partition.partition: 1 for partition, *_ in requested}
    reader.on_response(request, described(where), 0.0)
    return reader


def only(requests):
    (request,) = requests
    return request


def test_each_leader_receives_one_fetch_for_its_partitions():
    reader = reader_with_leaders(
        (FIRST, 5, 9), (SECOND, 7, 9), (SharePartition(T, 2), 8, 9),
        leaders={0: 1, 1: 2, 2: 1},
    )  # fmt: skip

    requests = {r.node_id: r.request for r in reader.next_requests(0.0)}

    assert [FIRST, SharePartition(T, 2)] == list(requests[1].partitions)
    assert [SECOND] == list(requests[2].partitions)
    assert (5, 5) == requests[1].partitions[FIRST][:2]  # the epoch, and the offset
    assert [] == reader.next_requests(1.0)


def test_partitions_without_records_are_first_in_the_next_fetch():
    reader = reader_with_leaders((FIRST, 0, 99), (SECOND, 0, 99))
    request = only(reader.next_requests(0.0))

    reader.on_response(request, fetched(part(FIRST, batch(0, 10)), part(SECOND)), 0.0)

    again = only(reader.next_requests(0.0))
    assert [SECOND, FIRST] == list(again.request.partitions)


def test_fetch_has_only_partitions_that_fit_in_a_response():
    many = [(SharePartition(T, n), 0, 1_000_000) for n in range(100)]
    reader = reader_with_leaders(*many)

    request = only(reader.next_requests(0.0))

    assert 0 < len(request.request.partitions) <= 3
    assert MAX_BYTES == request.request.max_bytes


def test_empty_response_is_followed_by_a_pause():
    reader = reader_with_leaders((FIRST, 0, 99))
    request = only(reader.next_requests(0.0))

    reader.on_response(request, fetched(part(FIRST)), 1.0)

    due = reader.next_deadline(1.0)
    assert 1.0 < due < 2.0
    assert [] == reader.next_requests(1.0)
    assert 1 == only(reader.next_requests(due)).node_id


@pytest.mark.parametrize(
    "response",
    [
        fetched(part(FIRST, error=Code.NOT_LEADER_OR_FOLLOWER)),
        fetched(part(FIRST, error=Code.FENCED_LEADER_EPOCH)),
        fetched(part(FIRST, error=Code.UNKNOWN_TOPIC_ID)),
        fetched(part(FIRST, error=9999)),
        fetched(error=Code.UNKNOWN_SERVER_ERROR),
    ],
)
def test_leader_is_looked_up_again_after_an_error(response):
    reader = reader_with_leaders((FIRST, 0, 99))
    request = only(reader.next_requests(0.0))

    assert [] == reader.on_response(request, response, 1.0)

    due = reader.next_deadline(1.0)
    lookup = only(reader.next_requests(due))
    assert NodeRequest(None, MetadataRequest(names=(), ids=(T,))) == lookup
    reader.on_response(lookup, described({0: 2}), due)
    assert 2 == only(reader.next_requests(due)).node_id


def test_partitions_do_not_wait_for_failed_ones():
    reader = reader_with_leaders((FIRST, 0, 99), (SECOND, 0, 99))
    request = only(reader.next_requests(0.0))
    failed = part(SECOND, error=Code.NOT_LEADER_OR_FOLLOWER)

    reader.on_response(request, fetched(part(FIRST, batch(0, 10)), failed), 1.0)

    assert [FIRST] == list(only(reader.next_requests(1.0)).request.partitions)


@pytest.mark.parametrize(
    "response",
    [
        described({0: -1}),
        described({0: 7}),
        described({}),
        described({0: 1}, topic_id=U),
        described({}, error=Code.LEADER_NOT_AVAILABLE),
        MetadataResponse(brokers={}, topics=()),
    ],
)
def test_metadata_without_the_leader_is_requested_again_after_a_pause(response):
    reader = new_reader((FIRST, 0, 9))
    request = only(reader.next_requests(0.0))

    reader.on_response(request, response, 1.0)

    assert [] == reader.next_requests(1.0)
    assert only(reader.next_requests(2.0)).node_id is None


# Lost offsets.


def reader_out_of_range(*requested, leader=1):
    reader = reader_with_leaders(*requested)
    request = only(reader.next_requests(0.0))
    reader.on_response(
        request,
        fetched(*(part(p, error=Code.OFFSET_OUT_OF_RANGE) for p, *_ in requested)),
        0,
    )
    return reader, only(reader.next_requests(0.0))


def listed(*offsets, error=0):
    return {
        TopicPartition("t", p): Reply(
            error, None, LogOffset(offset=at, timestamp=None, leader_epoch=None)
        )
        for p, at in offsets
    }


def test_offsets_before_the_log_start_are_lost_and_the_others_are_read():
    reader, request = reader_out_of_range((FIRST, 5, 29))

    (lost,) = reader.on_response(request, listed((0, 20)), 0.0)

    assert (FIRST, 5, 19) == lost[:3]
    assert 20 == only(reader.next_requests(0.0)).request.partitions[FIRST].offset


def test_offsets_beyond_the_log_are_lost_after_three_tries():
    reader, request = reader_out_of_range((FIRST, 5, 29))
    now = 0.0
    for _ in range(2):
        assert [] == reader.on_response(request, listed((0, 0)), now)
        now += 2
        reader.on_response(only(reader.next_requests(now)), described({0: 1}), now)
        out = part(FIRST, error=Code.OFFSET_OUT_OF_RANGE)
        reader.on_response(only(reader.next_requests(now)), fetched(out), now)
        request = only(reader.next_requests(now))

    (lost,) = reader.on_response(request, listed((0, 0)), now)

    assert (FIRST, 5, 29) == lost[:3]
    assert reader.finished


@pytest.mark.parametrize(
    "response", [listed((0, None), error=Code.NOT_LEADER_OR_FOLLOWER), listed()]
)
def test_unknown_log_start_is_retried(response):
    reader, request = reader_out_of_range((FIRST, 5, 29))

    assert [] == reader.on_response(request, response, 0.0)

    reader.on_response(only(reader.next_requests(2.0)), described({0: 1}), 2.0)
    assert isinstance(only(reader.next_requests(2.0)).request, Fetch)


def test_offsets_of_a_topic_that_stays_unknown_are_lost():
    reader = new_reader((FIRST, 0, 9), (SECOND, 3, 9), timeout=1e9)
    unknown = described({}, error=Code.UNKNOWN_TOPIC_ID)
    now, lost = 0.0, []
    while not reader.finished:
        now = max(now, reader.next_deadline(now))
        lost += reader.on_response(only(reader.next_requests(now)), unknown, now)

    assert [(FIRST, 0, 9), (SECOND, 3, 9)] == [each[:3] for each in lost]
    assert UNKNOWN_TOPIC_TIMEOUT <= now < UNKNOWN_TOPIC_TIMEOUT + 2


def test_topic_that_becomes_known_again_is_read():
    reader = new_reader((FIRST, 0, 9))
    unknown = described({}, error=Code.UNKNOWN_TOPIC_ID)
    for now in (0.0, UNKNOWN_TOPIC_TIMEOUT - 1):
        reader.on_response(only(reader.next_requests(now)), unknown, now)

    request = only(reader.next_requests(UNKNOWN_TOPIC_TIMEOUT + 1))
    assert [] == reader.on_response(
        request, described({0: 1}), UNKNOWN_TOPIC_TIMEOUT + 1
    )

    assert isinstance(only(reader.next_requests(99.0)).request, Fetch)


# The end.


def test_timeout_error_has_partition_and_offset():
    reader = new_reader((FIRST, 7, 9), timeout=20.0)
    now = 0.0
    while not reader.finished:
        now = max(now, reader.next_deadline(now))
        reader.on_error(
            only(reader.next_requests(now)), ConnectionFailedError("no way"), now
        )

    assert isinstance(reader.error, RequestTimedOutError)
    assert "t-0: reading offset 7 failed" in str(reader.error)
    assert " times in 2" in str(reader.error)
    assert "no way" in str(reader.error)
    assert 20.0 <= now < 22.0


def test_timeout_waits_for_the_minimum_number_of_attempts():
    reader = reader_with_leaders((FIRST, 0, 9), timeout=20.0)
    for now in (0.0, 500.0):
        reader.on_response(only(reader.next_requests(now)), fetched(part(FIRST)), now)

    assert reader.error is None
    reader.on_response(only(reader.next_requests(501.0)), fetched(part(FIRST)), 501.0)
    assert isinstance(reader.error, RequestTimedOutError)


def test_partition_without_records_does_not_time_out_while_others_progress():
    reader = reader_with_leaders((FIRST, 0, 9999), (SECOND, 0, 9), timeout=20.0)
    for at in range(10):
        now = 100.0 * at
        request = only(reader.next_requests(now))
        response = fetched(part(FIRST, batch(10 * at, 10)), part(SECOND))
        reader.on_response(request, response, now)

    assert reader.error is None


@pytest.mark.parametrize("where", ["metadata", "fetch"])
def test_forbidden_topic_is_fatal(where):
    code = Code.TOPIC_AUTHORIZATION_FAILED
    reader = new_reader((FIRST, 0, 9))
    request = only(reader.next_requests(0.0))
    if where == "metadata":
        reader.on_response(request, described({}, error=code), 0.0)
    else:
        reader.on_response(request, described({0: 1}), 0.0)
        request = only(reader.next_requests(0.0))
        reader.on_response(request, fetched(part(FIRST, error=code)), 0.0)

    assert isinstance(reader.error, AuthorizationError)
    assert reader.finished


@pytest.mark.parametrize("kind", [AuthenticationError, UnsupportedVersionError])
def test_error_that_lasts_is_raised_immediately(kind):
    reader = reader_with_leaders((FIRST, 0, 9))
    error = kind("the broker's certificate was rejected, or it is too old")

    reader.on_error(only(reader.next_requests(0.0)), error, 0.0)

    assert reader.error is error


# A simulated cluster with random failures.


class Log(NamedTuple):
    """The first offsets of the batches and of the log."""

    bounds: list[int]
    start: int


@st.composite
def logs(draw):
    bounds = sorted({0, *draw(st.sets(st.integers(1, 300), max_size=20)), 320})
    return Log(bounds, draw(st.sampled_from([0, 0, 0, 40, 200])))


@st.composite
def requested_spans(draw):
    bounds = sorted(draw(st.sets(st.integers(0, 319), min_size=2, max_size=10)))
    return [(a, b, 1) for a, b in zip(bounds[::2], bounds[1::2], strict=False)]


ERROR = st.sampled_from(
    ["none"] * 6 + ["cut", "moved", "nothing", "half", "unknown", "silent"]
)


def response_to(request, of, error, max_batches):
    """Return the response of a broker."""
    match request.request:
        case MetadataRequest():
            if error == "unknown":
                return described({}, error=Code.UNKNOWN_TOPIC_ID)
            return described(dict.fromkeys((p.partition for p in of), 1))
        case ListOffsets():
            error = Code.NOT_LEADER_OR_FOLLOWER if error == "moved" else 0
            begins = [(partition.partition, log.start) for partition, log in of.items()]
            return listed(*begins, error=error)
        case Fetch():
            requested = {} if error == "silent" else request.request.partitions
            return fetched(
                *(
                    part_of(p, of[p], each.offset, error, max_batches)
                    for p, each in requested.items()
                )
            )


def part_of(partition, log, offset, error, max_batches):
    if offset < log.start:
        return part(partition, error=Code.OFFSET_OUT_OF_RANGE)
    if error == "moved":
        return part(partition, error=Code.NOT_LEADER_OR_FOLLOWER)
    ends = zip(log.bounds, log.bounds[1:], strict=False)
    batches = [batch(first, after - first) for first, after in ends if after > offset]
    records = b"".join(batches[: 0 if error == "nothing" else max_batches])
    return part(partition, records[: len(records) // 2] if error == "half" else records)


@settings(deadline=None)
@given(
    of=st.tuples(logs(), logs()),
    requested=st.tuples(requested_spans(), requested_spans()),
    errors=st.lists(ERROR, max_size=25),
    max_batches=st.integers(1, 6),
)
def test_every_requested_offset_is_returned_once_or_lost(
    of, requested, errors, max_batches
):
    logs_by_partition = dict(zip((FIRST, SECOND), of, strict=True))
    spans = dict(zip((FIRST, SECOND), requested, strict=True))
    reader = LogReader(spans, NAMES, committed=False, timeout=1e9)
    returned = {FIRST: [], SECOND: []}
    lost = {FIRST: [], SECOND: []}
    at = {partition: held[0][0] for partition, held in spans.items()}
    now = 0.0
    for _ in range(1000):
        if reader.finished:
            break
        now = max(now, reader.next_deadline(now))
        for request in reader.next_requests(now):
            error = errors.pop() if errors else "none"
            if error == "cut":
                reader.on_error(request, ConnectionFailedError("cut"), now)
                continue
            response = response_to(request, logs_by_partition, error, max_batches)
            for event in reader.on_response(request, response, now):
                partition = event.share_partition
                if isinstance(event, LostRange):
                    first, last = event[1:3]
                    lost[partition] += range(first, last + 1)
                    at[partition] = last + 1
                else:
                    after = next_offset(event.records, at[partition])
                    returned[partition] += [
                        n
                        for first, last, _ in event.spans
                        for n in range(first, min(last + 1, after))
                    ]
                    at[partition] = after

    assert reader.finished
    assert reader.error is None
    for partition, held in spans.items():
        all_requested = [n for first, last, _ in held for n in range(first, last + 1)]
        gone = set(lost[partition]) & set(all_requested)
        assert all_requested == sorted([*returned[partition], *gone])
        assert all(n < logs_by_partition[partition].start for n in gone)
