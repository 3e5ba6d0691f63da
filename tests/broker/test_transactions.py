"""The transaction coordinator's state: epochs, ends, timeouts, fencing."""

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.transactions import (
    Producer,
    Transactions,
    TransactionSupport,
)

NONE = ErrorCode.none
FENCED = ErrorCode.producer_fenced
INVALID_STATE = ErrorCode.invalid_txn_state
WRONG_ID = ErrorCode.invalid_producer_id_mapping
PLACE = ("t", 0)
MINUTE = 60.0


class Client:
    """A producer that stores the id and epoch it last received."""

    def __init__(self, transactions=None, name="tx"):
        self.transactions = transactions or Transactions()
        self.name = name
        self.producer = None
        self.init()

    def init(self, timeout=MINUTE, expected=None):
        done = self.transactions.initialise(self.name, timeout, expected)
        if not done.error:
            self.producer = done.producer
        return done

    def write(self, *places, now=0.0):
        return self.transactions.add_partitions(
            self.name, self.producer, places or (PLACE,), now
        )

    def end(self, committed=True, version=2, producer=None):
        done = self.transactions.end(
            self.name, producer or self.producer, committed, version
        )
        if not done.error and version == 2:
            self.producer = done.producer
        return done


def later(producer, epochs=1):
    return Producer(producer.producer_id, producer.epoch + epochs)


def test_producer_with_expected_epoch_continues():
    client = Client()
    before = client.producer

    assert later(before) == client.init(expected=before).producer
    # The response was lost: the request is repeated with the same result.
    assert later(before) == client.init(expected=before).producer


def test_fenced_producer_cannot_continue():
    old = Client()
    new = Client(old.transactions)

    assert FENCED is old.init(expected=old.producer).error
    assert FENCED is new.init(expected=Producer(99, 0)).error


def test_unknown_producer_cannot_add_partitions():
    client = Client()
    add = client.transactions.add_partitions

    assert WRONG_ID is add("unknown", client.producer, [PLACE], 0.0)
    assert WRONG_ID is add("tx", Producer(99, 0), [PLACE], 0.0)
    assert FENCED is add("tx", later(client.producer), [PLACE], 0.0)
    assert ErrorCode.invalid_request is add("", client.producer, [PLACE], 0.0)


ENDS_AGAIN = {
    # The state and the repeated end: the errors for the producer before and after the
    # end (KIP-890).
    ("begun", True): (FENCED, INVALID_STATE),
    ("begun", False): (FENCED, NONE),
    ("committed", True): (NONE, INVALID_STATE),
    ("committed", False): (INVALID_STATE, NONE),
    ("aborted", True): (INVALID_STATE, INVALID_STATE),
    ("aborted", False): (NONE, NONE),
}


@pytest.mark.parametrize(("case", "errors"), ENDS_AGAIN.items())
def test_repeated_end_in_version_2(case, errors):
    state, committed = case
    before_end, after_end = errors
    client = Client()
    was = client.producer
    if state == "begun":
        client.init()
    else:
        client.write()
        client.end(state == "committed")
    now = client.producer

    repeated = client.end(committed, producer=was)
    assert before_end is repeated.error
    assert repeated.ended is None
    done = client.end(committed, producer=now)
    assert after_end is done.error
    if after_end is NONE:
        # Nothing to abort, but the producer gets another epoch.
        assert later(now) == done.producer
        assert frozenset() == done.ended.partitions


@pytest.mark.parametrize("ended", [True, False])
def test_repeated_end_in_version_1(ended):
    client = Client()
    assert INVALID_STATE is client.end(ended, version=1).error

    client.write()
    client.end(ended, version=1)
    again = client.end(ended, version=1)

    assert (NONE, None) == (again.error, again.ended)
    assert INVALID_STATE is client.end(not ended, version=1).error


def test_other_producer_cannot_end_a_transaction():
    client = Client()
    client.write()
    end = client.transactions.end

    assert WRONG_ID is end("unknown", client.producer, True, 2).error
    assert WRONG_ID is end("tx", Producer(99, 0), True, 2).error
    assert FENCED is end("tx", later(client.producer), True, 2).error
    assert ErrorCode.invalid_request is end("", client.producer, True, 2).error


def test_transaction_is_aborted_at_its_timeout():
    client = Client()
    client.init(timeout=5.0)
    assert math.inf == client.transactions.next_deadline

    client.write(now=10.0)
    client.write(("t", 1), now=12.0)

    assert 15.0 == client.transactions.next_deadline
    assert [] == client.transactions.advance(14.9)
    (ending,) = client.transactions.advance(15.0)
    assert {("t", 0), ("t", 1)} == ending.partitions
    assert not ending.committed
    # Measured: an end with the previous epoch counts as a repeat.
    assert INVALID_STATE is client.end(committed=True).error
    assert FENCED is client.write()
    assert NONE is client.end(committed=False).error
    assert [] == client.transactions.advance(99.0)
    assert math.inf == client.transactions.next_deadline


def test_ended_transaction_has_no_deadline():
    client = Client()
    client.write(now=0.0)
    client.end()

    assert math.inf == client.transactions.next_deadline
    assert [] == client.transactions.advance(1e9)


def with_last_epoch(client):
    """Return a producer with its last epoch."""
    while client.producer.epoch < 2**15 - 2:
        client.init()
    return client


def test_exhausted_producer_gets_another_id():
    client = with_last_epoch(Client())
    old = client.producer

    new = client.init(expected=old).producer

    assert (old.producer_id + 1, 0) == (new.producer_id, new.epoch)
    # If the response is lost, the producer sends its old id and epoch again.
    assert NONE is client.init(expected=old).error


def test_end_with_last_epoch_returns_new_id_and_can_be_repeated():
    client = with_last_epoch(Client())
    old = client.producer
    client.write()

    done = client.end()
    again = client.end(producer=old)

    assert 2**15 - 1 == done.ended.marker_epoch
    assert Producer(old.producer_id + 1, 0) == done.producer
    assert (NONE, done.producer, None) == (again.error, again.producer, again.ended)


def test_producer_with_last_epoch_can_be_fenced():
    client = with_last_epoch(Client())
    client.write(now=0.0)

    (ending,) = client.transactions.advance(1e9)

    assert 2**15 - 1 == ending.marker_epoch
    assert 0 == client.init().producer.epoch


@pytest.mark.parametrize("support", TransactionSupport)
def test_leaders_return_invalid_producer_epoch(support):
    client = Client()
    old = client.producer
    client.init()
    transactions = client.transactions

    assert {PLACE: ErrorCode.invalid_producer_epoch} == transactions.verify_or_add(
        "tx", old, [PLACE], support, 0.0
    )
    assert ErrorCode.invalid_producer_epoch is transactions.add_pending_offsets(
        "tx", old, "g", support, 0.0
    )


class SeveralProducers(RuleBasedStateMachine):
    """Producers that share two transactional ids and fence each other."""

    names = st.sampled_from(["a", "b"])
    numbers = st.integers(0, 4)

    @initialize()
    def begin(self):
        self.transactions = Transactions()
        self.now = 0.0
        self.seen = {}  # initialised producers by name
        self.open = {}  # added partitions by name
        self.given = set()

    @rule(name=names)
    def initialise(self, name):
        done = self.transactions.initialise(name, 5.0, None)
        if done.ended:
            self.ended(name, done.ended)
        else:
            assert name not in self.open
            self.give(name, done.producer)

    @rule(name=names, which=numbers, partition=numbers)
    def write(self, name, which, partition):
        producer = self.one_of(name, which)
        place = name, partition
        error = self.transactions.add_partitions(name, producer, [place], self.now)
        if error is NONE:
            assert producer == self.seen[name][-1]
            self.open.setdefault(name, set()).add(place)

    @rule(name=names, which=numbers, committed=st.booleans())
    def end(self, name, which, committed):
        producer = self.one_of(name, which)
        done = self.transactions.end(name, producer, committed, 2)
        if done.ended:
            assert producer == self.seen[name][-1]
            assert committed == done.ended.committed
            self.ended(name, done.ended)
            self.give(name, done.producer)

    @rule(seconds=st.floats(0.1, 4.0))
    def time_passes(self, seconds):
        self.now += seconds
        for ending in self.transactions.advance(self.now):
            (name,) = {place[0] for place in ending.partitions}
            self.ended(name, ending)

    @invariant()
    def every_transaction_has_a_deadline(self):
        assert (self.transactions.next_deadline < math.inf) == bool(self.open)

    def one_of(self, name, which):
        known = self.seen.get(name, [])
        return known[-1 - which] if which < len(known) else Producer(99, 0)

    def give(self, name, producer):
        assert producer not in self.given
        self.given.add(producer)
        self.seen.setdefault(name, []).append(producer)

    def ended(self, name, ending):
        assert self.open.pop(name, set()) == ending.partitions
        assert ending.marker_epoch > self.seen[name][-1].epoch


TestSeveralProducers = SeveralProducers.TestCase
