"""The backlog of a ledger, as another process reads it."""

import shutil

import pytest

from sharecons._record import TopicPartition
from sharecons.errors import ConfigurationError
from sharecons.spark.backlog import BacklogReader
from sharecons.spark.errors import LedgerError, LedgerLostError
from sharecons.spark.finished_mark import FinishedMark
from sharecons.spark.history import entry_name, finished_name
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.store import Store
from tests.spark.memory_storage import Killed, MemoryStorage

ORDERS = bytes(range(16))
FIRST = TopicPartition("orders", 0)
SECOND = TopicPartition("orders", 1)


class Query:
    """A query on a storage, without Spark and Kafka."""

    def __init__(self, storage):
        self.storage = storage
        self.store = Store(storage)
        self.ledger = self.store.open("billing")

    def acquire(self, first, last, partition=0):
        new = [AcquiredRange("orders", ORDERS, partition, first, last, 1)]
        self.store.append(new)
        self.ledger.append(new)

    def commit(self, position):
        self.ledger.trim(position)
        self.store.trim(self.ledger)
        while self.store.remove_old_entries():
            pass


def backlog(storage):
    return dict(BacklogReader(storage).read().offsets)


def test_new_ledger_has_no_backlog():
    query = Query(MemoryStorage())

    found = BacklogReader(query.storage).read()

    assert found.group_id == "billing"
    assert found.offsets == {}


def test_acquired_offsets_are_the_backlog_of_their_partition():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.acquire(10, 19, partition=1)
    query.acquire(200, 299)

    assert backlog(query.storage) == {FIRST: 200, SECOND: 10}


def test_finished_batches_are_not_in_the_backlog_before_spark_commits_them():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.acquire(0, 9, partition=1)
    query.store.mark_finished(60)
    assert backlog(query.storage) == {FIRST: 40, SECOND: 10}
    query.store.mark_finished(110)
    assert backlog(query.storage) == {}


def test_committed_batches_are_not_in_the_backlog_before_they_are_marked():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.acquire(100, 199)
    query.store.mark_finished(20)
    query.commit(150)

    # A snapshot has whole segments only.
    assert backlog(query.storage) == {FIRST: 50}


def test_restarted_query_keeps_the_mark():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.store.mark_finished(100)

    Query(query.storage)

    assert backlog(query.storage) == {}


def test_older_checkpoint_lowers_the_mark():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.store.mark_finished(100)
    again = Query(query.storage)

    again.store.mark_finished(30)

    assert backlog(query.storage) == {FIRST: 70}


def test_lower_of_two_marks_counts_after_a_kill():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.store.mark_finished(30)
    query.storage.fault = "killed after"
    with pytest.raises(Killed):
        query.store.mark_finished(60)

    assert backlog(query.storage) == {FIRST: 70}
    Query(query.storage).store.mark_finished(60)
    assert backlog(query.storage) == {FIRST: 40}


def test_repeated_mark_writes_nothing():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.store.mark_finished(30)
    created = query.storage.created

    query.store.mark_finished(30)

    assert query.storage.created == created
    assert finished_name(30) in query.storage.files


def test_driver_that_lost_the_ledger_marks_nothing():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.store.close()

    query.store.mark_finished(100)

    assert backlog(query.storage) == {FIRST: 100}


def test_mark_that_failed_is_written_again():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    mark = FinishedMark(query.store)
    mark.position = 40
    query.storage.fault = "failed"
    with pytest.raises(LedgerError, match="no response from the store"):
        mark.write()

    mark.write()

    assert backlog(query.storage) == {FIRST: 60}


def test_mark_is_written_once_per_position():
    query = Query(MemoryStorage())
    mark = FinishedMark(query.store)
    mark.write()
    assert query.storage.created == 1  # the entry of opening the ledger
    mark.position = 0
    mark.write()
    mark.write()
    assert query.storage.created == 2


def test_batches_of_spark_read_are_not_in_the_backlog():
    query = Query(MemoryStorage())
    query.store.begin_load("load", 0)
    query.acquire(0, 99)
    query.store.complete_load("load")

    assert backlog(query.storage) == {}


def test_reader_reads_new_entries_only():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    reads = []

    class Counted(MemoryStorage):
        def read(self, name):
            reads.append(name)
            return super().read(name)

    storage = Counted()
    storage.files = query.storage.files
    reader = BacklogReader(storage)
    reader.read()
    assert len(reads) == 2
    query.acquire(100, 149)
    assert dict(reader.read().offsets) == {FIRST: 150}
    assert reads[2:] == [entry_name(2)]


def test_entry_that_is_removed_meanwhile_is_read_again():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.acquire(100, 199)

    class Trimmed(MemoryStorage):
        def list_names(self):
            names = super().list_names()
            if query.ledger.begin == 0:
                query.commit(100)
            return names

    storage = Trimmed()
    storage.files = query.storage.files

    assert backlog(storage) == {FIRST: 100}


def test_damaged_entry_is_an_error():
    query = Query(MemoryStorage())
    query.acquire(0, 99)
    query.storage.files[entry_name(1)] = b"{"

    with pytest.raises(LedgerLostError, match="damaged"):
        backlog(query.storage)


def test_reader_of_a_missing_directory_creates_nothing(tmp_path):
    reader = BacklogReader(str(tmp_path / "lake" / "ledger"))

    with pytest.raises(LedgerError, match="there is no ledger in .*/lake/ledger"):
        reader.read()

    assert list(tmp_path.iterdir()) == []


def test_directory_without_a_ledger_is_an_error(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        BacklogReader(str(tmp_path)).read()


def test_ledger_on_a_disk_is_read_while_a_driver_has_it(tmp_path):
    store = Store(str(tmp_path / "ledger"))
    store.open("billing")
    store.append([AcquiredRange("orders", ORDERS, 1, 5, 9, 1)])
    reader = BacklogReader(str(tmp_path / "ledger"))

    assert dict(reader.read().offsets) == {SECOND: 5}
    store.mark_finished(3)
    assert dict(reader.read().offsets) == {SECOND: 2}
    store.mark_finished(4)
    assert dict(reader.read().offsets) == {SECOND: 1}
    store.close()
    assert dict(reader.read().offsets) == {SECOND: 1}


def test_deleted_ledger_is_not_created_again_by_a_mark(tmp_path):
    store = Store(str(tmp_path / "ledger"))
    store.open("billing")
    shutil.rmtree(tmp_path / "ledger")

    with pytest.raises(LedgerLostError, match="was deleted while this query used it"):
        store.mark_finished(0)

    assert list(tmp_path.iterdir()) == []


def test_unknown_file_system_is_an_error():
    with pytest.raises(ConfigurationError, match="ftp"):
        BacklogReader("ftp://host/ledger")
