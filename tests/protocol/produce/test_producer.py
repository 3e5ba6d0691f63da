"""The producer: each record is written once, or reported as failed."""

import pytest

from sharecons.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerError,
    ConnectionFailedError,
    Error,
    RequestTimedOutError,
)
from sharecons.protocol.codes import Code
from sharecons.protocol.produce.batches import MAX_BATCH_SIZE, PendingRecord
from sharecons.protocol.produce.messages import (
    InitProducerId,
    Produce,
    ProducerIdentity,
)
from sharecons.protocol.produce.producer import (
    Delivered,
    Failed,
    NodeRequest,
    ProducerMachine,
)
from sharecons.protocol.produce.topics import METADATA_MAX_AGE
from sharecons.record import TopicPartition
from sharecons.records.encoder import NewRecord
from tests.census import entries_of
from tests.protocol.produce.simulated_brokers import SimulatedBrokers, values_of

TIMEOUT = 30.0
LOST = ConnectionFailedError("the broker closed the connection")
P0 = TopicPartition("orders", 0)


class Harness:
    """A producer, brokers with a topic, and a clock."""

    def __init__(self, partitions: int = 1) -> None:
        self.now = 0.0
        self.brokers = SimulatedBrokers()
        self.brokers.create("orders", partitions)
        self.producer = ProducerMachine()

    def add(
        self,
        value: bytes,
        *,
        key: bytes | None = None,
        topic: str = "orders",
        partition: int | None = None,
    ) -> PendingRecord:
        new = NewRecord(key=key, value=value)
        record = PendingRecord(topic, new, self.now + TIMEOUT, partition)
        self.producer.add(record)
        return record

    def step(self) -> bool:
        """Exchange the requests that are due; return whether there were any."""
        requests = self.producer.next_requests(self.now)
        for request in requests:
            response = self.brokers.handle(request)
            self.producer.on_response(request, response, self.now)
        return bool(requests)

    def lose_batch(self, *, handled: bool) -> None:
        """Lose the first batch; if its leader has `handled` it, lose the response."""
        while True:
            for request in self.producer.next_requests(self.now):
                if isinstance(request.request, Produce):
                    if handled:
                        self.brokers.handle(request)
                    self.producer.on_error(request, LOST, self.now)
                    return
                response = self.brokers.handle(request)
                self.producer.on_response(request, response, self.now)

    def run(self, seconds: float = 10.0) -> None:
        """Exchange requests, and let time pass, until the producer is idle."""
        end = self.now + seconds
        while not self.producer.is_idle and self.now < end:
            if not self.step():
                deadline = self.producer.next_deadline(self.now)
                assert deadline > self.now, "no busy loop"
                self.now = min(end, deadline)

    def outcomes(self) -> list[tuple[bytes | None, object]]:
        """Return the value of each record with its offset or error code."""
        events, self.producer.events = self.producer.events, []
        return [
            (
                event.record.record.value,
                event.offset if isinstance(event, Delivered) else code_of(event),
            )
            for event in events
        ]

    def produce_requests(self) -> list[NodeRequest]:
        return [r for r in self.brokers.requests if isinstance(r.request, Produce)]


def code_of(event: Failed) -> object:
    error = event.error
    return error.name if isinstance(error, BrokerError) else type(error).__name__


def test_records_of_one_partition_are_written_in_order_in_one_batch() -> None:
    harness = Harness()
    for value in (b"a", b"b", b"c"):
        harness.add(value)

    harness.run()

    assert [b"a", b"b", b"c"] == harness.brokers.logs[P0]
    assert [(b"a", 0), (b"b", 1), (b"c", 2)] == harness.outcomes()
    assert 1 == len(harness.produce_requests())
    assert 0.0 == harness.now


def test_records_added_during_a_request_form_the_next_batch() -> None:
    harness = Harness()
    harness.add(b"first")
    while not harness.produce_requests():
        requests = harness.producer.next_requests(harness.now)
        for value in (b"a", b"b"):
            if isinstance(requests[0].request, Produce):
                harness.add(value)
        for request in requests:
            response = harness.brokers.handle(request)
            harness.producer.on_response(request, response, harness.now)

    harness.run()

    assert [[b"first"], [b"a", b"b"]] == [
        values_of(request.request.batches[P0]) for request in harness.produce_requests()
    ]


def test_records_of_one_key_stay_in_order_and_each_leader_gets_one_request() -> None:
    harness = Harness(partitions=4)
    for number in range(40):
        harness.add(b"%d" % number, key=b"key-%d" % (number % 5))

    harness.run()

    for log in harness.brokers.logs.values():
        assert sorted(log, key=int) == log
    assert 40 == len(harness.outcomes())
    assert {0, 1} == {request.node_id for request in harness.produce_requests()}
    assert 2 == len(harness.produce_requests())


def test_batches_without_keys_go_to_the_partitions_in_turn() -> None:
    harness = Harness(partitions=3)

    for value in (b"a", b"b", b"c", b"d"):
        harness.add(value)
        harness.run()

    assert [[b"a", b"d"], [b"b"], [b"c"]] == list(harness.brokers.logs.values())


def test_record_without_a_key_goes_to_the_only_partition_of_a_recreated_topic() -> None:
    harness = Harness(partitions=2)
    harness.add(b"a")  # to partition 0; the next one would go to partition 1
    harness.run()
    harness.brokers.leaders = {P0: 1}
    harness.add(b"b", partition=0)  # the moved leader refreshes the metadata
    harness.run()
    harness.add(b"c")

    harness.run()

    assert [(b"a", 0), (b"b", 1), (b"c", 2)] == harness.outcomes()


@pytest.mark.parametrize("handled", [True, False])
def test_batch_whose_response_is_lost_is_sent_again_and_written_once(
    handled: bool,
) -> None:
    harness = Harness()
    harness.add(b"a")
    harness.lose_batch(handled=handled)
    harness.add(b"b")

    harness.run()

    assert [b"a", b"b"] == harness.brokers.logs[P0]
    assert [(b"a", 0), (b"b", 1)] == harness.outcomes()
    assert harness.now > 0.0, "there was a backoff"


def test_batch_for_a_moved_partition_goes_to_the_new_leader() -> None:
    harness = Harness()
    harness.add(b"a")
    harness.run()
    harness.brokers.leaders[P0] = 1
    harness.add(b"b")

    harness.run()

    assert [b"a", b"b"] == harness.brokers.logs[P0]
    assert 1 == harness.produce_requests()[-1].node_id


def test_partition_without_a_leader_waits_for_one() -> None:
    harness = Harness()
    harness.brokers.leaders[P0] = -1
    harness.add(b"a")
    harness.run(seconds=3)
    assert [] == harness.outcomes()
    assert len(harness.brokers.requests) < 20, "requests have backoffs"
    harness.brokers.leaders[P0] = 1

    harness.run()

    assert [(b"a", 0)] == harness.outcomes()


def test_records_for_a_missing_topic_are_sent_when_it_appears() -> None:
    harness = Harness()
    harness.add(b"a", topic="late")
    harness.run(seconds=3)
    harness.brokers.create("late", 2)

    harness.run()

    assert [(b"a", 0)] == harness.outcomes()


def test_record_without_confirmation_fails_at_its_timeout() -> None:
    harness = Harness()
    harness.add(b"unknown", topic="missing")
    sent = harness.add(b"sent")
    harness.brokers.errors[P0] = Code.NOT_ENOUGH_REPLICAS

    harness.run(seconds=TIMEOUT + 1)

    assert {
        (b"unknown", "UNKNOWN_TOPIC_OR_PARTITION"),
        (b"sent", "RequestTimedOutError"),
    } == set(harness.outcomes())
    assert sent.was_sent
    assert TIMEOUT == pytest.approx(harness.now, abs=1.0)


def test_timeout_error_shows_if_the_record_was_sent() -> None:
    harness = Harness()
    harness.brokers.errors[P0] = Code.NOT_ENOUGH_REPLICAS
    harness.add(b"sent")
    harness.add(b"unknown", topic="missing")
    harness.run(seconds=TIMEOUT + 1)

    messages = {
        event.record.topic: str(event.error)
        for event in harness.producer.events
        if isinstance(event, Failed)
    }

    assert "it might have been written; last error: " in messages["orders"]
    assert "NOT_ENOUGH_REPLICAS" in messages["orders"]
    assert "does not exist, so a record was not written" in messages["missing"]


def test_record_after_a_timed_out_batch_has_a_new_sequence_number() -> None:
    """The leader has the first batch; it drops another with the same sequence."""
    harness = Harness()
    harness.add(b"timed out")
    harness.lose_batch(handled=True)
    harness.now = TIMEOUT + 1
    harness.add(b"next")

    harness.run()

    assert [b"timed out", b"next"] == harness.brokers.logs[P0]
    assert [(b"timed out", "RequestTimedOutError"), (b"next", 1)] == harness.outcomes()


@pytest.mark.parametrize(
    "code",
    [Code.OUT_OF_ORDER_SEQUENCE_NUMBER, Code.UNKNOWN_PRODUCER_ID],
)
def test_unknown_producer_requests_a_new_id(code: Code) -> None:
    harness = Harness(partitions=2)
    harness.add(b"a", partition=0)
    harness.add(b"b", partition=1)
    harness.run()
    harness.brokers.errors[P0] = code
    harness.add(b"c", partition=0)
    harness.step()
    del harness.brokers.errors[P0]
    harness.add(b"d", partition=1)

    harness.run()

    assert [[b"a", b"c"], [b"b", b"d"]] == list(harness.brokers.logs.values())
    ids = [r for r in harness.brokers.requests if r.request == InitProducerId()]
    assert 2 == len(ids)


def test_partition_that_a_response_leaves_out_delays_no_other() -> None:
    harness = Harness(partitions=3)
    harness.brokers.leaders = dict.fromkeys(harness.brokers.leaders, 0)
    harness.brokers.left_out.add(P0)
    for partition in range(3):
        harness.add(b"%d" % partition, partition=partition)

    while not harness.produce_requests():
        harness.step()
    first = [value for value, _ in harness.outcomes()]
    harness.brokers.left_out.clear()
    harness.run()

    assert [b"1", b"2"] == first
    assert [b"0"] == [value for value, _ in harness.outcomes()]


def test_too_large_batch_is_split() -> None:
    harness = Harness()
    harness.brokers.max_records = 3
    for number in range(10):
        harness.add(b"%d" % number)

    harness.run()

    assert [b"%d" % number for number in range(10)] == harness.brokers.logs[P0]
    assert [offset for _, offset in harness.outcomes()] == list(range(10))


def test_too_large_record_fails_and_the_next_is_written() -> None:
    harness = Harness()
    harness.brokers.max_records = 0
    harness.add(b"large")
    harness.run()
    harness.brokers.max_records = 1
    harness.add(b"small")

    harness.run()

    (large, small) = harness.producer.events
    assert isinstance(large, Failed)
    assert "did not take a record of about 37 bytes" in str(large.error)
    assert "raise max.message.bytes of topic 'orders'" in str(large.error)
    assert isinstance(small, Delivered)
    assert [(b"large", "MESSAGE_TOO_LARGE"), (b"small", 0)] == harness.outcomes()


def test_large_records_are_sent_in_batches_of_limited_size() -> None:
    harness = Harness()
    for _ in range(5):
        harness.add(b"x" * (MAX_BATCH_SIZE // 2 - 100))

    harness.run()

    assert [2, 2, 1] == [
        len(values_of(request.request.batches[P0]))
        for request in harness.produce_requests()
    ]


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (Code.TOPIC_AUTHORIZATION_FAILED, AuthorizationError, "grant WRITE on it"),
        (Code.INVALID_RECORD, BrokerError, "orders-0 did not take a batch"),
    ],
)
def test_fatal_error_fails_the_batch_but_not_the_next(
    code: Code, kind: type[Error], text: str
) -> None:
    harness = Harness()
    harness.brokers.errors[P0] = code
    harness.add(b"a")
    harness.run()
    (event,) = harness.producer.events
    assert isinstance(event, Failed)
    assert type(event.error) is kind
    assert text in str(event.error)
    harness.outcomes()
    harness.brokers.errors.clear()
    harness.add(b"b")

    harness.run()

    assert [(b"b", 0)] == harness.outcomes()


def test_forbidden_topic_fails_its_records_immediately() -> None:
    harness = Harness()
    harness.brokers.topic_errors["orders"] = Code.TOPIC_AUTHORIZATION_FAILED
    harness.add(b"a")

    harness.run()

    assert [(b"a", "TOPIC_AUTHORIZATION_FAILED")] == harness.outcomes()
    assert 0.0 == harness.now


def test_record_for_a_missing_partition_fails() -> None:
    harness = Harness(partitions=2)
    harness.add(b"a", partition=2)
    harness.run()
    assert [(b"a", "UNKNOWN_TOPIC_OR_PARTITION")] == harness.outcomes()
    harness.add(b"b", partition=5)

    harness.run()

    assert [(b"b", "UNKNOWN_TOPIC_OR_PARTITION")] == harness.outcomes()


def test_rejected_credentials_fail_all_records() -> None:
    harness = Harness()
    harness.add(b"a")
    harness.add(b"b", topic="other")
    error = AuthenticationError("wrong password")

    for request in harness.producer.next_requests(0.0):
        harness.producer.on_error(request, error, 0.0)

    assert {(b"a", "AuthenticationError"), (b"b", "AuthenticationError")} == set(
        harness.outcomes()
    )
    assert harness.producer.is_idle


def test_throttled_leader_receives_the_next_request_after_the_throttle_time() -> None:
    harness = Harness()
    harness.add(b"a")
    harness.run()
    harness.add(b"b")
    (request,) = harness.producer.next_requests(0.0)
    response = harness.brokers.handle(request)
    throttled = type(response)(partitions=response.partitions, throttle=2.0)  # type: ignore[union-attr, call-arg]
    harness.producer.on_response(request, throttled, 0.0)
    harness.add(b"c")

    assert [] == harness.producer.next_requests(1.9)
    assert 2.0 == harness.producer.next_deadline(1.9)
    assert 1 == len(harness.producer.next_requests(2.0))


def test_idle_producer_sends_nothing() -> None:
    harness = Harness()

    assert [] == harness.producer.next_requests(0.0)
    assert float("inf") == harness.producer.next_deadline(0.0)
    assert harness.producer.is_idle


def test_failed_lookups_are_repeated_with_backoffs() -> None:
    harness = Harness()
    harness.add(b"a")
    times = []
    while harness.now < 5:
        for request in harness.producer.next_requests(harness.now):
            times.append(harness.now)
            harness.producer.on_error(request, LOST, harness.now)
        harness.now = harness.producer.next_deadline(harness.now)

    assert 5 < len(times) < 15
    harness.run()
    assert [(b"a", 0)] == harness.outcomes()
    assert isinstance(RequestTimedOutError("late"), TimeoutError)


def test_batch_that_was_possibly_written_is_not_split() -> None:
    harness = Harness()
    for value in (b"a", b"b", b"c"):
        harness.add(value)
    harness.lose_batch(handled=True)
    harness.brokers.max_records = 1

    harness.run()

    assert [b"a", b"b", b"c"] == harness.brokers.logs[P0]
    assert ["MESSAGE_TOO_LARGE"] * 3 == [outcome for _, outcome in harness.outcomes()]


def test_batch_that_was_possibly_written_is_not_sent_with_another_producer_id() -> None:
    harness = Harness()
    harness.add(b"a")
    harness.lose_batch(handled=True)
    harness.brokers.errors[P0] = Code.UNKNOWN_PRODUCER_ID
    harness.run()
    assert [(b"a", "UNKNOWN_PRODUCER_ID")] == harness.outcomes()
    harness.brokers.errors.clear()
    harness.add(b"b")

    harness.run()

    assert [b"a", b"b"] == harness.brokers.logs[P0]
    assert [(b"b", 1)] == harness.outcomes()


# A fixed producer id; another process has already used sequence numbers of it.

FIXED = ProducerIdentity(77, 0)


def fixed_producer(harness: Harness, *values: bytes, first: int = 0) -> ProducerMachine:
    """Write records with a producer that has a fixed id, and return it."""
    harness.producer = ProducerMachine(identity=FIXED, sequences={P0: first})
    for value in values:
        harness.add(value, partition=0)
    harness.run()
    return harness.producer


def test_fixed_id_is_not_requested_and_continues_the_sequence() -> None:
    harness = Harness()
    fixed_producer(harness, b"1", b"2")
    fixed_producer(harness, b"3", first=2)

    assert [b"1", b"2", b"3"] == harness.brokers.logs[P0]
    assert not [
        each
        for each in harness.brokers.requests
        if isinstance(each.request, InitProducerId)
    ]


def test_equal_batches_of_two_processes_are_appended_once() -> None:
    harness = Harness()
    fixed_producer(harness, b"1", b"2")
    producer = fixed_producer(harness, b"1", b"2")

    assert [b"1", b"2"] == harness.brokers.logs[P0]
    assert [True, True] == [isinstance(each, Delivered) for each in producer.events]


def test_other_batch_of_a_second_process_fails_and_requests_no_new_id() -> None:
    harness = Harness()
    fixed_producer(harness, b"1", b"2", b"3")
    producer = fixed_producer(harness, b"2", first=1)

    assert [b"1", b"2", b"3"] == harness.brokers.logs[P0]
    (event,) = producer.events
    assert isinstance(event, Failed)
    assert isinstance(event.error, BrokerError)
    assert Code.OUT_OF_ORDER_SEQUENCE_NUMBER == event.error.code
    assert producer.is_idle


def test_topics_that_are_written_once_are_forgotten_after_minutes() -> None:
    harness = Harness()
    entries = []
    for number in range(40):
        harness.brokers.create(f"replies-{number}", 1)
        harness.add(b"reply", topic=f"replies-{number}")
        harness.run()
        harness.add(b"a")
        harness.run()
        harness.now += METADATA_MAX_AGE / 2
        assert [(b"reply", 0), (b"a", number)] == harness.outcomes()
        entries.append(sum(entries_of(harness.producer).values()))

    assert max(entries[20:]) <= max(entries[:20])


def test_record_for_a_forgotten_topic_is_written_under_another_producer_id() -> None:
    """With the same id its sequence number would be of the first record."""
    harness = Harness()
    harness.brokers.create("replies", 1)
    for value in (b"a", b"b"):
        harness.add(value, topic="replies")
        harness.run()
        for _ in range(3):
            harness.now += METADATA_MAX_AGE
            harness.add(value)
            harness.run()

    assert [b"a", b"b"] == harness.brokers.logs[TopicPartition("replies", 0)]
    ids = [r for r in harness.brokers.requests if r.request == InitProducerId()]
    assert 2 == len(ids)


def test_topic_is_not_forgotten_by_a_producer_with_a_fixed_id() -> None:
    harness = Harness()
    harness.producer = ProducerMachine(identity=ProducerIdentity(7, 0))
    harness.brokers.create("replies", 1)
    for value in (b"a", b"b"):
        harness.add(value, topic="replies")
        harness.run()
        for _ in range(3):
            harness.now += METADATA_MAX_AGE
            harness.add(value)
            harness.run()

    assert [b"a", b"b"] == harness.brokers.logs[TopicPartition("replies", 0)]
