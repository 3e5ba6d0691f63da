"""Storages: files are created atomically, on all kinds of file systems."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from sharecons.errors import ConfigurationError
from sharecons.spark import local_storage
from sharecons.spark.errors import LedgerError, LedgerLostError, LedgerTakenError
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.remote_storage import RenamingStorage
from sharecons.spark.storage import open_storage
from sharecons.spark.store import Store

SEGMENT = [AcquiredRange("orders", bytes(16), 0, 0, 9, 1)]


@pytest.fixture(params=["path", "file", "memory"])
def location(request, tmp_path):
    if request.param == "memory":
        pytest.importorskip("fsspec")
        return f"memory://{tmp_path}/ledger"
    path = tmp_path / "a new directory" / "ledger"
    return str(path) if request.param == "path" else path.as_uri()


def test_file_is_read_as_it_was_created(location):
    storage = open_storage(location)
    assert [] == storage.list_names()
    storage.create("a", b"first")

    assert ["a"] == open_storage(location).list_names()
    assert b"first" == open_storage(location).read("a")


def test_existing_file_is_not_overwritten(location):
    storage = open_storage(location)
    storage.list_names()
    storage.create("a", b"first")

    with pytest.raises(FileExistsError):
        open_storage(location).create("a", b"second")
    assert b"first" == open_storage(location).read("a")
    assert ["a"] == open_storage(location).list_names()


def test_missing_directory_is_empty(location):
    assert [] == open_storage(location).list_names()


def test_removing_a_missing_file_is_no_error(location):
    storage = open_storage(location)
    storage.list_names()
    storage.create("a", b"")
    storage.remove("a")
    storage.remove("a")

    assert [] == storage.list_names()
    with pytest.raises(FileNotFoundError):
        storage.read("a")


def test_concurrent_creates_of_a_file_succeed_once(tmp_path):
    storage = open_storage(str(tmp_path / "ledger"))
    storage.list_names()

    def create(number):
        try:
            storage.create("a", b"%d" % number)
        except FileExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        created = [n for n in pool.map(create, range(64)) if n is not None]

    assert [int(storage.read("a"))] == created
    assert ["a"] == os.listdir(tmp_path / "ledger")


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("ftp://here/ledger", "create files atomically"),
        ("dbfs:/ledger", "create files atomically"),
        ("", "must be a directory"),
        (None, "must be a directory"),
        ("abfss://here/ledger", "install adlfs"),
        ("hdfs://here/ledger", "needs pyarrow and a Hadoop client"),
    ],
)
def test_unsupported_location_is_rejected(location, message):
    with pytest.raises(ConfigurationError, match=message):
        open_storage(location)


def test_tilde_is_expanded_in_paths_only(tmp_path, monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for location in ("~/ledger", "./~/ledger", "memory://~/ledger"):
        storage = open_storage(location)
        storage.list_names()
        storage.create("a", b"")

    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("a")}
    assert found == {"home/ledger/a", "~/ledger/a"}
    with pytest.raises(ConfigurationError, match="home directory does not exist"):
        open_storage("~no-such-user/ledger")


def test_object_store_that_overwrites_is_rejected(monkeypatch):
    memory = pytest.importorskip("fsspec.implementations.memory")
    plain = memory.MemoryFileSystem.pipe_file
    monkeypatch.setattr(
        memory.MemoryFileSystem,
        "pipe_file",
        lambda self, path, value, mode=None: plain(self, path, value),
    )

    with pytest.raises(ConfigurationError, match="overwrites files"):
        Store("memory://careless/ledger").open("billing")


# HDFS, simulated by a file system that does not rename onto existing files.


class Hdfs:
    """The local file system by pyarrow, with a rename that never overwrites."""

    def __init__(self, fs):
        self._disk = fs.LocalFileSystem()

    def __getattr__(self, name):
        return getattr(self._disk, name)

    def move(self, source, target):
        if os.path.exists(target):
            raise OSError(f"cannot rename {source} to {target}")
        self._disk.move(source, target)


@pytest.fixture
def hdfs_files():
    return Hdfs(pytest.importorskip("pyarrow.fs"))


@pytest.fixture
def hdfs(hdfs_files, tmp_path):
    return RenamingStorage(hdfs_files, str(tmp_path / "ledger"))


def test_rename_does_not_overwrite_an_existing_file(hdfs):
    assert [] == hdfs.list_names()
    hdfs.create("a", b"first")
    with pytest.raises(FileExistsError):
        hdfs.create("a", b"second")

    assert b"first" == hdfs.read("a")
    assert ["a"] == hdfs.list_names()


def test_other_error_of_a_rename_is_raised(hdfs, hdfs_files):
    def fail(source, target):
        raise OSError("no space left")

    hdfs.list_names()
    hdfs_files.move = fail
    with pytest.raises(OSError, match="no space left"):
        hdfs.create("a", b"first")

    assert [] == hdfs.list_names()


def test_ledger_works_on_a_renaming_storage(hdfs):
    store = Store(hdfs)
    ledger = store.open("billing")
    store.append(SEGMENT)
    ledger.append(SEGMENT)
    ledger.trim(10)
    store.trim(ledger)
    store.remove_old_entries()
    again = Store(hdfs).open("billing")

    assert (10, 10) == (again.begin, again.end)
    with pytest.raises(LedgerTakenError):
        store.check_ownership()


# Local directories.


def test_file_is_synced_before_and_its_name_after_linking(tmp_path, monkeypatch):
    done = []
    link, sync = os.link, os.fsync

    def linked(source, target):
        done.append("named")
        link(source, target)

    def synced(handle):
        done.append("directory" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        sync(handle)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(os, "fsync", synced)
    open_storage(str(tmp_path)).create("a", b"first")

    assert ["file", "named", "directory"] == done


def test_file_system_without_hard_links_is_an_error(tmp_path, monkeypatch):
    def fail(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(local_storage.os, "link", fail)

    with pytest.raises(LedgerError, match="making a hard link failed"):
        Store(str(tmp_path)).open("billing")
    assert [".driver"] == os.listdir(tmp_path)


def test_second_driver_on_this_machine_is_rejected(tmp_path):
    first = Store(str(tmp_path))
    first.open("billing")

    with pytest.raises(LedgerTakenError, match=f"in use by process {os.getpid()} on"):
        Store(str(tmp_path)).open("billing")
    # The first one continues.
    first.append(SEGMENT)


def test_deleted_ledger_is_not_created_again_by_a_write(tmp_path):
    store = Store(str(tmp_path / "ledger"))
    store.open("billing")
    shutil.rmtree(tmp_path / "ledger")

    with pytest.raises(LedgerLostError, match="was deleted while this query used it"):
        store.append(SEGMENT)
    assert not (tmp_path / "ledger").exists()


def test_closed_ledger_is_unlocked(tmp_path):
    first = Store(str(tmp_path))
    first.open("billing")
    first.append(SEGMENT)
    first.close()

    assert 10 == Store(str(tmp_path)).open("billing").end


def test_store_can_be_opened_again_by_its_owner(tmp_path):
    store = Store(str(tmp_path))
    store.open("billing")
    store.append(SEGMENT)

    assert 10 == store.open("billing").end
    with pytest.raises(LedgerTakenError):
        Store(str(tmp_path)).open("billing")


def test_failed_open_unlocks_the_ledger(tmp_path):
    store = Store(str(tmp_path))
    store.open("billing")
    store.close()
    with pytest.raises(LedgerError):
        Store(str(tmp_path)).open("shipping")

    Store(str(tmp_path)).open("billing")


WRITER = """
import sys
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.store import Store

store = Store(sys.argv[1])
store.open("billing")
for number in range(10**9):
    first = number * 20
    segment = [AcquiredRange("orders", bytes(16), 0, first, first + 9, 1)]
    store.append(segment)
    print(number, flush=True)
"""


@pytest.mark.slow("Spark starts a JVM")
@pytest.mark.parametrize("appends", [1, 7, 40])
def test_killed_driver_leaves_all_appended_segments(tmp_path, appends):
    writer = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(writer, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed = [process.stdout.readline() for _ in range(appends)]
        finally:
            process.kill()
        printed += process.stdout.readlines()
    # Without a timeout: the lock has ended with the process.
    ledger = Store(str(tmp_path)).open("billing")

    assert ledger.end // 10 in (len(printed), len(printed) + 1)
    assert not list(tmp_path.glob(".*.jsonl.*"))


@pytest.mark.slow("Spark starts a JVM")
def test_open_waits_for_a_driver_that_ends(tmp_path):
    context = multiprocessing.get_context("spawn")
    locked = context.Event()
    process = context.Process(target=_hold_ledger, args=(str(tmp_path), locked))
    process.start()
    locked.wait(30)
    try:
        assert 10 == Store(str(tmp_path)).open("billing", lock_timeout=30).end
    finally:
        process.join(30)


def _hold_ledger(location, locked):
    store = Store(location)
    store.open("billing")
    store.append(SEGMENT)
    locked.set()
    # The lock ends with the process.


def test_draft_of_a_killed_driver_is_removed(tmp_path):
    draft = tmp_path / ".00000000000000000007.jsonl.0123"
    draft.write_bytes(b"half an entry")
    Store(str(tmp_path)).open("billing")

    assert not draft.exists()


def test_entries_are_lines_of_json(tmp_path):
    store = Store(str(tmp_path))
    store.open("billing")
    store.append(SEGMENT)
    lines = (tmp_path / "00000000000000000001.jsonl").read_text().splitlines()

    assert "acquired" == json.loads(lines[0])["kind"]
    assert [0, 0, 0, 9, 1] == json.loads(lines[1])
