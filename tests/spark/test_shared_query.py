"""Several readers of one query: their offsets, trimming, and rejected readers."""

import threading

import pytest

from sharecons.spark.errors import LedgerTakenError
from sharecons.spark.shared_query import OWNER, SharedQuery

LEDGER = "0123abcd"


class Query:
    """A query whose ledger grows by ten offsets at each call of `latest_offset`."""

    def __init__(self):
        self.end = 0
        self.trimmed = []
        self.during = None

    def initial_offset(self):
        return at(0)

    def latest_offset(self, start, *, max_offsets, min_offsets):
        if self.during is not None:
            self.during()
        self.end += 10
        return at(
            self.end
            if max_offsets is None
            else min(self.end, start["position"] + max_offsets)
        )

    def report_latest_offset(self):
        return at(self.end)

    def plan_tasks(self, start, end):
        return [[(start["position"], end["position"])]]

    def commit(self, end):
        self.trimmed.append(end["position"])


def at(position):
    return {"position": position, "ledger": LEDGER}


def latest(shared, reader, start, max_offsets=None):
    return shared.latest_offset(
        reader, at(start), max_offsets=max_offsets, min_offsets=None
    )["position"]


@pytest.fixture
def query():
    return Query()


@pytest.fixture
def shared(query):
    return SharedQuery(query)


def test_readers_get_the_same_offsets_in_each_trigger(shared):
    readers = [OWNER, shared.attach(), shared.attach()]

    assert [shared.initial_offset(reader) for reader in readers] == [at(0)] * 3
    for start, end in ((0, 10), (10, 20), (20, 30)):
        assert [latest(shared, reader, start) for reader in readers] == [end] * 3


def test_readers_at_different_offsets_get_their_own_ends(shared):
    # This happens if their checkpoints differ.
    other = shared.attach()

    assert latest(shared, OWNER, 5, max_offsets=10) == 10
    assert latest(shared, other, 7, max_offsets=3) == 10
    assert latest(shared, OWNER, 10, max_offsets=10) == 20
    assert latest(shared, other, 10, max_offsets=10) == 20


def test_trim_waits_for_the_commits_of_all_readers(shared, query):
    one, two = shared.attach(), shared.attach()
    shared.commit(one, at(20))
    shared.commit(OWNER, at(10))
    assert query.trimmed == []
    shared.commit(two, at(30))
    shared.commit(OWNER, at(40))
    shared.commit(one, at(30))

    assert query.trimmed == [10, 20, 30]


def test_single_reader_trims_at_its_commits(shared, query):
    shared.commit(OWNER, at(10))
    shared.commit(OWNER, at(20))

    assert query.trimmed == [10, 20]


@pytest.mark.parametrize(
    "call",
    [
        lambda shared: shared.initial_offset(OWNER),
        lambda shared: latest(shared, OWNER, 0),
        lambda shared: shared.plan_tasks(OWNER, at(0), at(0)),
        lambda shared: shared.commit(OWNER, at(0)),
        lambda shared: shared.close(),
    ],
)
def test_no_reader_attaches_after_the_first_offset(shared, call):
    assert shared.attach() is not None
    call(shared)

    assert shared.attach() is None


def test_overlapping_calls_split_the_query_and_the_owner_continues(shared, query):
    other = shared.attach()

    def call():
        with pytest.raises(LedgerTakenError, match="two queries use it"):
            latest(shared, other, 0)

    def overlap():
        query.during = None
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    query.during = overlap
    assert latest(shared, OWNER, 0) == 10
    with pytest.raises(LedgerTakenError):
        shared.commit(other, at(10))
    with pytest.raises(LedgerTakenError):
        shared.plan_tasks(other, at(0), at(10))
    shared.commit(OWNER, at(10))

    assert query.trimmed == [10]


def test_overlapping_owner_continues_alone(shared, query):
    other = shared.attach()

    def overlap():
        query.during = None
        assert latest(shared, OWNER, 0) == 10

    query.during = overlap
    latest(shared, other, 0)

    with pytest.raises(LedgerTakenError):
        latest(shared, other, 20)


def test_planning_may_overlap_with_other_calls(shared, query):
    # Spark plans two scans in two threads, with adaptive execution.
    other = shared.attach()
    query.during = lambda: shared.plan_tasks(other, at(0), at(0))

    assert latest(shared, OWNER, 0) == 10
    assert latest(shared, other, 0) == 10


@pytest.mark.parametrize("early", [0, 1])
def test_reader_called_twice_in_a_trigger_splits_the_query(shared, early):
    other = shared.attach()
    for start in (0, 10):
        latest(shared, OWNER, start)
        latest(shared, other, start)
    reader = (OWNER, other)[early]
    latest(shared, reader, 20)
    if reader == OWNER:
        latest(shared, reader, 30)
    with pytest.raises(LedgerTakenError, match="give each query a load"):
        latest(shared, other, 30)

    latest(shared, OWNER, 30)
    latest(shared, OWNER, 40)


def test_failed_call_does_not_count_as_running(shared, query):
    other = shared.attach()

    def fail():
        raise RuntimeError("on purpose")

    query.during = fail
    with pytest.raises(RuntimeError):
        latest(shared, OWNER, 0)
    query.during = None

    assert latest(shared, other, 0) == 10
