"""Readers that attach to a query through a socket."""

import subprocess
import sys
import tempfile
import threading
import time

import pytest

from sharecons.errors import ClosedError
from sharecons.spark.errors import LedgerLostError, LedgerTakenError
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.load_lock import Address, LoadLock
from sharecons.spark.query_link import AttachedQuery, OwnedQuery, open_query
from tests.spark.test_shared_query import Query as CountingQuery
from tests.spark.test_shared_query import at

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no flock")

TASKS = [[AcquiredRange("orders", bytes(range(16)), 1, 5, 9, 2)], []]


class Query(CountingQuery):
    def __init__(self, options, lock):
        super().__init__()
        self.lock = lock
        self.is_drained = False
        self.stopped = 0

    def end_when_drained(self):
        self.is_drained = True

    def plan_tasks(self, start, end):
        if end == at(99):
            raise LedgerLostError("the ledger ends at position 10")
        if end == at(98):
            raise ValueError("something else")
        return TASKS

    def request_stop(self):
        pass

    def stop(self):
        self.stopped += 1
        self.lock.release()


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def open_reader():
    """Opens queries like the readers of one load(), and stops them after the test."""
    queries = []

    def open_one(timeout=0.0, query_type=Query):
        query = open_query(None, "one", opener=query_type, timeout=timeout)
        queries.append(query)
        return query

    yield open_one
    for query in queries:
        query.stop()


def test_second_reader_attaches_and_gets_the_same_results(open_reader):
    first, second = open_reader(), open_reader()
    assert isinstance(first, OwnedQuery)
    assert isinstance(second, AttachedQuery)
    second.end_when_drained()

    assert first._query.is_drained
    assert first.initial_offset() == second.initial_offset() == at(0)
    for query in (first, second):
        assert query.latest_offset(at(0), max_offsets=None, min_offsets=None) == at(10)
        assert query.report_latest_offset() == at(10)
    assert first.plan_tasks(at(0), at(10)) == second.plan_tasks(at(0), at(10)) == TASKS
    second.commit(at(10))
    assert first._query.trimmed == []
    first.commit(at(10))
    assert first._query.trimmed == [10]


def test_errors_are_raised_in_the_calling_process(open_reader):
    first, second = open_reader(), open_reader()
    first.initial_offset()

    with pytest.raises(LedgerLostError, match=r"^the ledger ends at position 10$"):
        second.plan_tasks(at(0), at(99))
    with pytest.raises(Exception, match="ValueError: something else"):
        second.plan_tasks(at(0), at(98))
    assert second.initial_offset() == at(0)


@pytest.mark.parametrize(
    "call",
    [
        "initial_offset",
        "latest_offset",
        "plan_tasks",
        "commit",
        "request_stop",
        "another",
    ],
)
def test_late_reader_is_rejected(open_reader, call):
    first = open_reader()
    if call == "latest_offset":
        first.latest_offset(at(0), max_offsets=None, min_offsets=None)
    elif call == "plan_tasks":
        first.plan_tasks(at(0), at(0))
    elif call == "commit":
        first.commit(at(0))
    elif call == "another":
        open_reader().initial_offset()
    else:
        getattr(first, call)()

    with pytest.raises(LedgerTakenError, match=r"^process \d+ .* two queries use it"):
        open_reader(timeout=0.3)
    first.stop()
    assert isinstance(open_reader(), OwnedQuery)


def test_query_stops_listening_at_the_first_offset(open_reader):
    query = open_reader()
    query.initial_offset()
    deadline = time.monotonic() + 10
    while query._listener.fileno() != -1 and time.monotonic() < deadline:
        time.sleep(0.01)

    assert query._listener.fileno() == -1


def test_reader_is_rejected_while_another_opens_the_ledger(open_reader):
    # One query opens its second reader after the first.
    errors = []

    def open_second():
        with pytest.raises(LedgerTakenError) as caught:
            open_reader(timeout=1.0)
        errors.append(caught.value)

    def slow(options, lock):
        second.start()
        time.sleep(0.3)
        return Query(options, lock)

    second = threading.Thread(target=open_second)
    open_reader(query_type=slow)
    second.join()

    assert len(errors) == 1


def test_reader_waits_for_the_previous_query(open_reader):
    first = open_reader()
    first.initial_offset()
    threading.Timer(0.3, first.stop).start()

    assert isinstance(open_reader(timeout=10), OwnedQuery)


def test_lock_is_released_if_opening_fails(open_reader):
    def fail(options, lock):
        raise LedgerLostError("on purpose")

    with pytest.raises(LedgerLostError):
        open_reader(query_type=fail)
    assert isinstance(open_reader(), OwnedQuery)


OWNER = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from tests.spark.test_query_link import Query, open_query

query = open_query(None, "one", opener=Query, timeout=0)
query._query.during = lambda: (print("called", flush=True), time.sleep(60))
print("opened", flush=True)
time.sleep(60)
"""


def test_call_fails_when_the_owner_is_killed(open_reader, directory):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory)], stdout=subprocess.PIPE
    )
    assert owner.stdout.readline() == b"opened\n"
    attached = open_reader()
    killer = threading.Thread(
        target=lambda: (owner.stdout.readline(), owner.kill(), owner.wait())
    )
    killer.start()

    with pytest.raises(ClosedError, match="start the query again"):
        attached.latest_offset(at(0), max_offsets=None, min_offsets=None)
    killer.join()
    owner.stdout.close()
    with pytest.raises(ClosedError):
        attached.initial_offset()
    assert isinstance(open_reader(), OwnedQuery)


def test_request_stop_ends_a_running_call(open_reader):
    first, second = open_reader(), open_reader()
    called, finish = threading.Event(), threading.Event()
    first._query.during = lambda: (called.set(), finish.wait(30))
    ended = []

    def ask():
        with pytest.raises(ClosedError):
            second.latest_offset(at(0), max_offsets=None, min_offsets=None)
        ended.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    assert called.wait(10)
    second.request_stop()
    thread.join(10)
    finish.set()

    assert ended == [True]


@pytest.mark.parametrize("token", ["", "wrong"])
def test_reader_with_a_wrong_token_is_rejected(open_reader, token):
    first = open_reader()
    lock = LoadLock("one")
    address = lock.try_acquire().address

    assert AttachedQuery.attach(Address(address.port, token)) is None
    first.commit(at(10))
    assert first._query.trimmed == [10]
