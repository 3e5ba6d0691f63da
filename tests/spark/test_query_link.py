"""Readers that attach to a query through a socket."""

import socket
import subprocess
import sys
import tempfile
import threading

import pytest

from sharecons.errors import ClosedError
from sharecons.spark.errors import LedgerLostError, LedgerTakenError
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.load_lock import Address, LoadLock
from sharecons.spark.query_link import AttachedQuery, OwnedQuery, open_query
from tests.spark.test_shared_query import Query as CountingQuery
from tests.spark.test_shared_query import at
from tests.waiting import until_true

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no flock")

TASKS = [[AcquiredRange("orders", bytes(range(16)), 1, 5, 9, 2)], []]


class Query(CountingQuery):
    def __init__(self, options, lock, during=None):
        super().__init__()
        self.lock = lock
        self.during = during
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


class Readers:
    """Opens queries like the readers of one load().

    Attributes:
        query: the last query that an owner has opened.
    """

    def __init__(self):
        self.query = None
        self.opened = []

    def open(self, timeout=0.0, opener=Query):
        def remember(options, lock):
            self.query = opener(options, lock)
            return self.query

        reader = open_query(None, "one", opener=remember, timeout=timeout)
        self.opened.append(reader)
        return reader


@pytest.fixture
def readers():
    """Opens readers, and stops them after the test."""
    readers = Readers()
    yield readers
    for reader in readers.opened:
        reader.stop()


def test_second_reader_attaches_and_gets_the_same_results(readers):
    first, second = readers.open(), readers.open()
    assert isinstance(first, OwnedQuery)
    assert isinstance(second, AttachedQuery)
    second.end_when_drained()

    assert readers.query.is_drained
    assert first.initial_offset() == second.initial_offset() == at(0)
    for query in (first, second):
        assert query.latest_offset(at(0), max_offsets=None, min_offsets=None) == at(10)
        assert query.report_latest_offset() == at(10)
    assert first.plan_tasks(at(0), at(10)) == second.plan_tasks(at(0), at(10)) == TASKS
    second.commit(at(10))
    assert readers.query.trimmed == []
    first.commit(at(10))
    assert readers.query.trimmed == [10]


def test_errors_are_raised_in_the_calling_process(readers):
    first, second = readers.open(), readers.open()
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
def test_late_reader_is_rejected(readers, call):
    first = readers.open()
    if call == "latest_offset":
        first.latest_offset(at(0), max_offsets=None, min_offsets=None)
    elif call == "plan_tasks":
        first.plan_tasks(at(0), at(0))
    elif call == "commit":
        first.commit(at(0))
    elif call == "another":
        readers.open().initial_offset()
    else:
        getattr(first, call)()

    with pytest.raises(LedgerTakenError, match=r"^process \d+ .* two queries use it"):
        readers.open(timeout=0.3)
    first.stop()
    assert isinstance(readers.open(), OwnedQuery)


def test_query_stops_listening_at_the_first_offset(readers):
    query = readers.open()
    address = LoadLock("one").try_acquire().address
    query.initial_offset()

    def is_closed():
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", address.port)) != 0

    until_true(is_closed)


def test_reader_is_rejected_while_another_opens_the_ledger(readers, rejections):
    # One query opens its second reader after the first.
    errors = []

    def open_second():
        with pytest.raises(LedgerTakenError) as caught:
            readers.open(timeout=0.5)
        errors.append(caught.value)

    def slow(options, lock):
        second.start()
        assert rejections.acquire(timeout=30)
        return Query(options, lock)

    second = threading.Thread(target=open_second)
    readers.open(opener=slow)
    second.join()

    assert len(errors) == 1


def test_reader_waits_for_the_previous_query(readers, rejections):
    first = readers.open()
    first.initial_offset()

    def stop_first():
        assert rejections.acquire(timeout=30)
        first.stop()

    stopping = threading.Thread(target=stop_first)
    stopping.start()

    assert isinstance(readers.open(timeout=10), OwnedQuery)
    stopping.join()


def test_lock_is_released_if_opening_fails(readers):
    def fail(options, lock):
        raise LedgerLostError("on purpose")

    with pytest.raises(LedgerLostError):
        readers.open(opener=fail)
    assert isinstance(readers.open(), OwnedQuery)


OWNER = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from tests.spark.test_query_link import Query, open_query

def during():
    print("called", flush=True)
    time.sleep(60)

query = open_query(None, "one", lambda *given: Query(*given, during), timeout=0)
print("opened", flush=True)
time.sleep(60)
"""


def test_call_fails_when_the_owner_is_killed(readers, directory):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory)], stdout=subprocess.PIPE
    )
    assert owner.stdout.readline() == b"opened\n"
    attached = readers.open()
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
    assert isinstance(readers.open(), OwnedQuery)


def test_request_stop_ends_a_running_call(readers):
    _, second = readers.open(), readers.open()
    called, finish = threading.Event(), threading.Event()
    readers.query.during = lambda: (called.set(), finish.wait(30))
    ended = []

    def call():
        with pytest.raises(ClosedError):
            second.latest_offset(at(0), max_offsets=None, min_offsets=None)
        ended.append(True)

    thread = threading.Thread(target=call)
    thread.start()
    assert called.wait(10)
    second.request_stop()
    thread.join(10)
    finish.set()

    assert ended == [True]


@pytest.mark.parametrize("token", ["", "wrong"])
def test_reader_with_a_wrong_token_is_rejected(readers, token):
    first = readers.open()
    lock = LoadLock("one")
    address = lock.try_acquire().address

    assert AttachedQuery.attach(Address(address.port, token)) is None
    first.commit(at(10))
    assert readers.query.trimmed == [10]
