"""The producer under random failures.

After any failures each record has one outcome, a delivered record is at the offset in
its event, no record is written twice, a record that was never sent is in no log, and
the records of a partition keep their order.
"""

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given, settings

from sharecons.errors import ConnectionFailedError
from sharecons.protocol.codes import Code
from sharecons.protocol.produce.batches import PendingRecord
from sharecons.protocol.produce.producer import (
    Delivered,
    NodeRequest,
    ProduceEvent,
    ProducerMachine,
)
from sharecons.record import TopicPartition
from sharecons.records.encoder import NewRecord
from tests.protocol.hypothesis_profile import EXAMPLES, THOROUGH, search
from tests.protocol.produce.simulated_brokers import SimulatedBrokers

LOST = ConnectionFailedError("the broker closed the connection")
TIMEOUT = 5.0
PARTITIONS = 2
NODES = 2
ERRORS = (
    Code.NOT_ENOUGH_REPLICAS,
    Code.REQUEST_TIMED_OUT,
    Code.NOT_LEADER_OR_FOLLOWER,
    Code.INVALID_RECORD,
    Code.MESSAGE_TOO_LARGE,
    Code.KAFKA_STORAGE_ERROR,
    999,
)


class Run:
    """A producer with requests in flight."""

    def __init__(self) -> None:
        self.now = 0.0
        self.brokers = SimulatedBrokers()
        self.brokers.create("orders", PARTITIONS, NODES)
        self.producer = ProducerMachine()
        self.added: list[PendingRecord] = []
        self.in_flight: list[NodeRequest] = []
        self.events: list[ProduceEvent] = []

    def add(self, key: bytes | None) -> None:
        new = NewRecord(key=key, value=b"%d" % len(self.added))
        record = PendingRecord("orders", new, self.now + TIMEOUT, None)
        self.added.append(record)
        self.producer.add(record)

    def send(self) -> None:
        due = self.producer.next_deadline(self.now)
        requests = self.producer.next_requests(self.now)
        assert due <= self.now or not requests
        self.in_flight += requests
        nodes = Counter(request.node_id for request in self.in_flight)
        assert all(count == 1 for count in nodes.values()), (
            "a node has two requests in flight"
        )

    def finish_request(self, index: int, outcome: str) -> None:
        """Finish a request; the broker handles a request whose response is `lost`."""
        if not self.in_flight:
            return
        request = self.in_flight.pop(index % len(self.in_flight))
        if outcome == "unsent":
            self.producer.on_error(request, LOST, self.now)
            return
        response = self.brokers.handle(request)
        if outcome == "lost":
            self.producer.on_error(request, LOST, self.now)
        else:
            self.producer.on_response(request, response, self.now)

    def finish_all(self, outcome: str) -> None:
        """Send the requests that are due, and finish all with one outcome."""
        self.send()
        while self.in_flight:
            self.finish_request(0, outcome)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def limit(self, records: int) -> None:
        self.brokers.max_records = records

    def set_error(self, partition: int, code: int | None) -> None:
        where = TopicPartition("orders", partition)
        self.brokers.errors.pop(where, None)
        if code is not None:
            self.brokers.errors[where] = code

    def move_leader(self, partition: int, node_id: int) -> None:
        self.brokers.leaders[TopicPartition("orders", partition)] = node_id

    def forget(self) -> None:
        """Drop the brokers' state of producers, as after a day without a batch."""
        if self.producer.is_idle:
            self.brokers.forget_producers()

    def run_to_the_end(self) -> None:
        """Repair the brokers, and run until each record has an outcome."""
        self.brokers.errors.clear()
        self.brokers.max_records = 1 << 30
        for partition in range(PARTITIONS):
            self.move_leader(partition, partition % NODES)
        for _ in range(1000):
            self.send()
            while self.in_flight:
                self.finish_request(0, "response")
            if self.producer.is_idle:
                break
            self.now = self.producer.next_deadline(self.now)
        assert self.producer.is_idle
        self.events += self.producer.events


def check(run: Run) -> None:
    outcomes = Counter(id(event.record) for event in run.events)
    assert {id(record): 1 for record in run.added} == dict(outcomes)
    written = Counter(value for log in run.brokers.logs.values() for value in log)
    assert all(count == 1 for count in written.values()), "a record is written twice"
    for event in run.events:
        value = event.record.record.value
        assert value is not None
        if isinstance(event, Delivered):
            assert written[value] >= 1
            if event.offset >= 0:
                log = run.brokers.logs[TopicPartition("orders", event.partition)]
                assert value == log[event.offset]
        elif not event.record.was_sent:
            assert 0 == written[value]
    for log in run.brokers.logs.values():
        numbers = [int(value) for value in log]
        assert sorted(numbers) == numbers, "records are out of order"


KEYS = st.sampled_from([None, b"a", b"b", b"c"])
OUTCOMES = st.sampled_from(["response", "response", "lost", "unsent"])
STEPS = st.one_of(
    st.tuples(st.just("add"), KEYS),
    st.tuples(st.just("add"), KEYS),
    st.tuples(st.just("send")),
    st.tuples(st.just("finish_request"), st.integers(0, 3), OUTCOMES),
    st.tuples(st.just("finish_all"), OUTCOMES),
    st.tuples(st.just("finish_all"), OUTCOMES),
    st.tuples(st.just("wait"), st.sampled_from([0.05, 0.3, 2.0, TIMEOUT])),
    st.tuples(
        st.just("set_error"),
        st.integers(0, PARTITIONS - 1),
        st.one_of(st.none(), st.sampled_from(ERRORS)),
    ),
    st.tuples(
        st.just("move_leader"), st.integers(0, PARTITIONS - 1), st.integers(-1, NODES)
    ),
    st.tuples(st.just("limit"), st.sampled_from([1, 2, 100])),
    st.tuples(st.just("forget")),
)


@search
@settings(EXAMPLES, max_examples=5_000 if THOROUGH else 200)
@given(st.lists(STEPS, min_size=25, max_size=60))
def test_every_record_is_written_once_or_reported_as_failed(steps: list[tuple]) -> None:
    run = Run()
    run.add(None)
    for _ in range(3):  # requests: metadata, producer id, produce
        run.finish_all("response")
    for name, *arguments in steps:
        getattr(run, name)(*arguments)
    run.run_to_the_end()

    check(run)
