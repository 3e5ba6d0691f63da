"""The log reader, with simulated logs."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthorizationError,
    ConnectionFailedError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.protocol.admin.models import LogOffset, OffsetSpec
from sharecons.protocol.admin.requests import ListOffsets, Reply
from sharecons.protocol.codes import Code
from sharecons.protocol.log_reader.messages import Fetch, Fetched, FetchedPartition
from sharecons.protocol.log_reader.reader import (
    MAX_BYTES,
    UNKNOWN_TOPIC_TIMEOUT,
    FetchedSlice,
    LogReader,
    LostRange,
    NodeRequest,
)
from sharecons.protocol.messages import (
    Endpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionLeader,
    SharePartition,
    TopicDescription,
)
from sharecons.records.columns_reader import next_offset
from sharecons.records.encoder import NewRecord, encode

T, U = b"t" * 16, b"u" * 16
NAMES = {T: "t", U: "u"}
FIRST, SECOND = SharePartition(T, 0), SharePartition(T, 1)
HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)
BROKERS = {1: Endpoint("one", 1), 2: Endpoint("two", 2)}


def reading(*wanted, timeout=30.0):
    spans = {place: [(first, last, 1)] for place, first, last in wanted}
    return LogReader(spans, NAMES, committed=False, timeout=timeout)


def described(leaders, *, topic_id=T, error=0, brokers=BROKERS):
    """An answer of Metadata: node and epoch by partition."""
    topic = TopicDescription(
        error=error,
        name=None if error else NAMES[topic_id],
        topic_id=topic_id,
        leaders={p: PartitionLeader(node, 5) for p, node in leaders.items()},
    )
    return MetadataResponse(brokers=brokers, topics=(topic,))


def batch(first, count):
    return encode([NewRecord()] * count, base_offset=first)


def part(place, records=b"", error=0):
    return FetchedPartition(place, error, 1000, 0, (), memoryview(records))


def fetched(*parts, error=0):
    return Fetched(error=error, partitions=parts, throttle=0.0)


def led(*wanted, leaders=None, **options):
    """A reading that knows its leaders: by itself, of node 1."""
    machine = reading(*wanted, **options)
    (ask,) = machine.next_requests(0.0)
    where = leaders or {place.partition: 1 for place, *_ in wanted}
    machine.on_response(ask, described(where), 0.0)
    return machine


def only(asks):
    (ask,) = asks
    return ask


def test_leaders_are_asked_for_by_the_topics_ids():
    machine = reading((FIRST, 0, 9), (SharePartition(U, 0), 0, 9))

    ask = only(machine.next_requests(0.0))

    assert NodeRequest(None, MetadataRequest(names=(), ids=(T, U))) == ask
    assert [] == machine.next_requests(0.0)


def test_each_leader_is_asked_for_all_that_it_leads():
    machine = led(
        (FIRST, 5, 9), (SECOND, 7, 9), (SharePartition(T, 2), 8, 9),
        leaders={0: 1, 1: 2, 2: 1},
    )  # fmt: skip

    asks = {ask.node_id: ask.request for ask in machine.next_requests(0.0)}

    assert [FIRST, SharePartition(T, 2)] == list(asks[1].partitions)
    assert [SECOND] == list(asks[2].partitions)
    assert (5, 5) == asks[1].partitions[FIRST][:2]  # the epoch, and the offset
    assert [] == machine.next_requests(1.0)


def test_the_next_request_leaves_before_anything_is_decoded():
    machine = led((FIRST, 5, 29))
    ask = only(machine.next_requests(0.0))
    records = batch(0, 10)

    happened = machine.on_response(ask, fetched(part(FIRST, records)), 0.0)

    assert [FetchedSlice(FIRST, [(5, 29, 1)], memoryview(records), ())] == happened
    assert 10 == only(machine.next_requests(0.0)).request.partitions[FIRST].offset


def test_it_is_finished_when_all_came():
    machine = led((FIRST, 5, 9))
    ask = only(machine.next_requests(0.0))

    machine.on_response(ask, fetched(part(FIRST, batch(0, 10))), 0.0)

    assert machine.finished
    assert machine.error is None
    assert [] == machine.next_requests(0.0)


def test_partitions_without_records_go_first_next_time():
    machine = led((FIRST, 0, 99), (SECOND, 0, 99))
    ask = only(machine.next_requests(0.0))

    machine.on_response(ask, fetched(part(FIRST, batch(0, 10)), part(SECOND)), 0.0)

    again = only(machine.next_requests(0.0))
    assert [SECOND, FIRST] == list(again.request.partitions)


def test_a_request_asks_for_no_more_than_an_answer_holds():
    many = [(SharePartition(T, n), 0, 1_000_000) for n in range(100)]
    machine = led(*many)

    ask = only(machine.next_requests(0.0))

    assert 0 < len(ask.request.partitions) <= 3
    assert MAX_BYTES == ask.request.max_bytes


def test_empty_response_is_followed_by_a_pause():
    machine = led((FIRST, 0, 99))
    ask = only(machine.next_requests(0.0))

    machine.on_response(ask, fetched(part(FIRST)), 1.0)

    due = machine.next_deadline(1.0)
    assert 1.0 < due < 2.0
    assert [] == machine.next_requests(1.0)
    assert 1 == only(machine.next_requests(due)).node_id


@pytest.mark.parametrize(
    "answer",
    [
        fetched(part(FIRST, error=Code.NOT_LEADER_OR_FOLLOWER)),
        fetched(part(FIRST, error=Code.FENCED_LEADER_EPOCH)),
        fetched(part(FIRST, error=Code.UNKNOWN_TOPIC_ID)),
        fetched(part(FIRST, error=9999)),
        fetched(error=Code.UNKNOWN_SERVER_ERROR),
    ],
)
def test_error_looks_up_the_leader_again(answer):
    machine = led((FIRST, 0, 99))
    ask = only(machine.next_requests(0.0))

    assert [] == machine.on_response(ask, answer, 1.0)

    due = machine.next_deadline(1.0)
    asked = only(machine.next_requests(due))
    assert NodeRequest(None, MetadataRequest(names=(), ids=(T,))) == asked
    machine.on_response(asked, described({0: 2}), due)
    assert 2 == only(machine.next_requests(due)).node_id


def test_broken_connection_looks_up_the_leader_again():
    machine = led((FIRST, 0, 99))
    ask = only(machine.next_requests(0.0))

    machine.on_error(ask, ConnectionFailedError("broken"), 1.0)

    assert [] == machine.next_requests(1.0)
    assert only(machine.next_requests(2.0)).node_id is None


def test_partitions_do_not_wait_for_failing_ones():
    machine = led((FIRST, 0, 99), (SECOND, 0, 99))
    ask = only(machine.next_requests(0.0))
    refused = part(SECOND, error=Code.NOT_LEADER_OR_FOLLOWER)

    machine.on_response(ask, fetched(part(FIRST, batch(0, 10)), refused), 1.0)

    assert [FIRST] == list(only(machine.next_requests(1.0)).request.partitions)


@pytest.mark.parametrize(
    "answer",
    [
        described({0: -1}),
        described({0: 7}),
        described({}),
        described({0: 1}, topic_id=U),
        described({}, error=Code.LEADER_NOT_AVAILABLE),
        MetadataResponse(brokers={}, topics=()),
    ],
)
def test_without_a_leader_metadata_is_asked_again_after_a_pause(answer):
    machine = reading((FIRST, 0, 9))
    ask = only(machine.next_requests(0.0))

    machine.on_response(ask, answer, 1.0)

    assert [] == machine.next_requests(1.0)
    assert only(machine.next_requests(2.0)).node_id is None


# Lost.


def astray(*wanted, leader=1):
    machine = led(*wanted)
    ask = only(machine.next_requests(0.0))
    machine.on_response(
        ask, fetched(*(part(p, error=Code.OFFSET_OUT_OF_RANGE) for p, *_ in wanted)), 0
    )
    return machine, only(machine.next_requests(0.0))


def listed(*offsets, error=0):
    return {
        TopicPartition("t", p): Reply(
            error, None, LogOffset(offset=at, timestamp=None, leader_epoch=None)
        )
        for p, at in offsets
    }


def test_offset_out_of_range_looks_up_the_log_start():
    _, ask = astray((FIRST, 5, 29), (SECOND, 5, 29))

    specs = dict.fromkeys((HERE, THERE), OffsetSpec.EARLIEST)
    assert NodeRequest(1, ListOffsets(specs=specs, read_committed=False)) == ask


def test_offsets_before_the_log_are_lost_and_the_rest_is_read():
    machine, ask = astray((FIRST, 5, 29))

    (lost,) = machine.on_response(ask, listed((0, 20)), 0.0)

    assert (FIRST, 5, 19) == lost[:3]
    assert 20 == only(machine.next_requests(0.0)).request.partitions[FIRST].offset


def test_offsets_beyond_the_log_are_lost_after_three_tries():
    machine, ask = astray((FIRST, 5, 29))
    now = 0.0
    for _ in range(2):
        assert [] == machine.on_response(ask, listed((0, 0)), now)
        now += 2
        machine.on_response(only(machine.next_requests(now)), described({0: 1}), now)
        out = part(FIRST, error=Code.OFFSET_OUT_OF_RANGE)
        machine.on_response(only(machine.next_requests(now)), fetched(out), now)
        ask = only(machine.next_requests(now))

    (lost,) = machine.on_response(ask, listed((0, 0)), now)

    assert (FIRST, 5, 29) == lost[:3]
    assert machine.finished


@pytest.mark.parametrize(
    "answer", [listed((0, None), error=Code.NOT_LEADER_OR_FOLLOWER), listed()]
)
def test_unknown_log_start_is_retried(answer):
    machine, ask = astray((FIRST, 5, 29))

    assert [] == machine.on_response(ask, answer, 0.0)

    machine.on_response(only(machine.next_requests(2.0)), described({0: 1}), 2.0)
    assert isinstance(only(machine.next_requests(2.0)).request, Fetch)


def test_a_topic_that_stays_unknown_is_lost_after_a_while():
    machine = reading((FIRST, 0, 9), (SECOND, 3, 9), timeout=1e9)
    unknown = described({}, error=Code.UNKNOWN_TOPIC_ID)
    now, lost = 0.0, []
    while not machine.finished:
        now = max(now, machine.next_deadline(now))
        lost += machine.on_response(only(machine.next_requests(now)), unknown, now)

    assert [(FIRST, 0, 9), (SECOND, 3, 9)] == [each[:3] for each in lost]
    assert UNKNOWN_TOPIC_TIMEOUT <= now < UNKNOWN_TOPIC_TIMEOUT + 2


def test_a_topic_that_becomes_known_again_is_read():
    machine = reading((FIRST, 0, 9))
    unknown = described({}, error=Code.UNKNOWN_TOPIC_ID)
    for now in (0.0, UNKNOWN_TOPIC_TIMEOUT - 1):
        machine.on_response(only(machine.next_requests(now)), unknown, now)

    ask = only(machine.next_requests(UNKNOWN_TOPIC_TIMEOUT + 1))
    assert [] == machine.on_response(ask, described({0: 1}), UNKNOWN_TOPIC_TIMEOUT + 1)

    assert isinstance(only(machine.next_requests(99.0)).request, Fetch)


# The end.


def test_lasting_failures_end_with_an_error_that_names_partition_and_offset():
    machine = reading((FIRST, 7, 9), timeout=20.0)
    now = 0.0
    while not machine.finished:
        now = max(now, machine.next_deadline(now))
        machine.on_error(
            only(machine.next_requests(now)), ConnectionFailedError("no way"), now
        )

    assert isinstance(machine.error, RequestTimedOutError)
    assert "t-0: reading offset 7 failed" in str(machine.error)
    assert " times in 2" in str(machine.error)
    assert "no way" in str(machine.error)
    assert 20.0 <= now < 22.0


def test_slow_caller_gets_the_minimum_number_of_tries():
    machine = led((FIRST, 0, 9), timeout=20.0)
    for now in (0.0, 500.0):
        machine.on_response(only(machine.next_requests(now)), fetched(part(FIRST)), now)

    assert machine.error is None
    machine.on_response(only(machine.next_requests(501.0)), fetched(part(FIRST)), 501.0)
    assert isinstance(machine.error, RequestTimedOutError)


def test_time_of_other_partitions_is_no_failure():
    machine = led((FIRST, 0, 9999), (SECOND, 0, 9), timeout=20.0)
    for at in range(10):
        now = 100.0 * at
        ask = only(machine.next_requests(now))
        answer = fetched(part(FIRST, batch(10 * at, 10)), part(SECOND))
        machine.on_response(ask, answer, now)

    assert machine.error is None


@pytest.mark.parametrize("where", ["metadata", "fetch"])
def test_a_topic_that_may_not_be_read_ends_it(where):
    code = Code.TOPIC_AUTHORIZATION_FAILED
    machine = reading((FIRST, 0, 9))
    ask = only(machine.next_requests(0.0))
    if where == "metadata":
        machine.on_response(ask, described({}, error=code), 0.0)
    else:
        machine.on_response(ask, described({0: 1}), 0.0)
        ask = only(machine.next_requests(0.0))
        machine.on_response(ask, fetched(part(FIRST, error=code)), 0.0)

    assert isinstance(machine.error, AuthorizationError)
    assert machine.finished


def test_a_broker_that_is_too_old_ends_it():
    machine = led((FIRST, 0, 9))
    error = UnsupportedVersionError("too old")

    machine.on_error(only(machine.next_requests(0.0)), error, 0.0)

    assert machine.error is error


def test_nothing_to_read_is_read_at_once():
    assert reading().finished


# A cluster of numbers, in which all goes wrong that may.


class Log(NamedTuple):
    """Where batches begin, and where the log does."""

    bounds: list[int]
    start: int


@st.composite
def logs(draw):
    bounds = sorted({0, *draw(st.sets(st.integers(1, 300), max_size=20)), 320})
    return Log(bounds, draw(st.sampled_from([0, 0, 0, 40, 200])))


@st.composite
def wants(draw):
    bounds = sorted(draw(st.sets(st.integers(0, 319), min_size=2, max_size=10)))
    return [(a, b, 1) for a, b in zip(bounds[::2], bounds[1::2], strict=False)]


ERROR = st.sampled_from(
    ["none"] * 6 + ["cut", "moved", "nothing", "half", "unknown", "silent"]
)


def answer_of(ask, of, error, room):
    """The responses of a broker."""
    match ask.request:
        case MetadataRequest():
            if error == "unknown":
                return described({}, error=Code.UNKNOWN_TOPIC_ID)
            return described(dict.fromkeys((p.partition for p in of), 1))
        case ListOffsets():
            error = Code.NOT_LEADER_OR_FOLLOWER if error == "moved" else 0
            begins = [(place.partition, log.start) for place, log in of.items()]
            return listed(*begins, error=error)
        case Fetch():
            wanted = {} if error == "silent" else ask.request.partitions
            return fetched(
                *(
                    part_of(p, of[p], each.offset, error, room)
                    for p, each in wanted.items()
                )
            )


def part_of(place, log, offset, error, room):
    if offset < log.start:
        return part(place, error=Code.OFFSET_OUT_OF_RANGE)
    if error == "moved":
        return part(place, error=Code.NOT_LEADER_OR_FOLLOWER)
    ends = zip(log.bounds, log.bounds[1:], strict=False)
    batches = [batch(first, after - first) for first, after in ends if after > offset]
    records = b"".join(batches[: 0 if error == "nothing" else room])
    return part(place, records[: len(records) // 2] if error == "half" else records)


@settings(deadline=None)
@given(
    of=st.tuples(logs(), logs()),
    wanted=st.tuples(wants(), wants()),
    errors=st.lists(ERROR, max_size=25),
    room=st.integers(1, 6),
)
def test_every_requested_offset_is_returned_once_or_lost(of, wanted, errors, room):
    places = dict(zip((FIRST, SECOND), of, strict=True))
    spans = dict(zip((FIRST, SECOND), wanted, strict=True))
    machine = LogReader(spans, NAMES, committed=False, timeout=1e9)
    came = {FIRST: [], SECOND: []}
    lost = {FIRST: [], SECOND: []}
    at = {place: held[0][0] for place, held in spans.items()}
    now = 0.0
    for _ in range(1000):
        if machine.finished:
            break
        now = max(now, machine.next_deadline(now))
        for ask in machine.next_requests(now):
            error = errors.pop() if errors else "none"
            if error == "cut":
                machine.on_error(ask, ConnectionFailedError("cut"), now)
                continue
            answer = answer_of(ask, places, error, room)
            for happened in machine.on_response(ask, answer, now):
                place = happened.share_partition
                if isinstance(happened, LostRange):
                    first, last = happened[1:3]
                    lost[place] += range(first, last + 1)
                    at[place] = last + 1
                else:
                    after = next_offset(happened.records, at[place])
                    came[place] += [
                        n
                        for first, last, _ in happened.spans
                        for n in range(first, min(last + 1, after))
                    ]
                    at[place] = after

    assert machine.finished
    assert machine.error is None
    for place, held in spans.items():
        all_wanted = [n for first, last, _ in held for n in range(first, last + 1)]
        gone = set(lost[place]) & set(all_wanted)
        assert all_wanted == sorted([*came[place], *gone])
        assert all(n < places[place].start for n in gone)
