"""The lock that lets one process at a time acquire for a load()."""

import subprocess
import sys
import tempfile
import threading
import time

import pytest

from sharecons.spark.errors import LedgerTakenError
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.store import Store
from tests.spark.places import Shelf

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no flock")


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_second_lock_of_a_load_is_refused_after_its_patience():
    first, second = LoadLock("one"), LoadLock("one", patience=0.2)
    first.acquire()
    began = time.monotonic()

    with pytest.raises(LedgerTakenError, match=r"^process \d+ on .* foreachBatch"):
        second.acquire()
    assert time.monotonic() - began >= 0.2


def test_locks_of_two_loads_do_not_meet():
    first, second = LoadLock("one"), LoadLock("two", patience=0)
    first.acquire()
    second.acquire()


def test_lock_that_is_released_leaves_no_file(directory):
    lock = LoadLock("one")
    lock.acquire()
    assert list(directory.iterdir())
    lock.release()
    lock.release()

    assert not list(directory.iterdir())
    LoadLock("one", patience=0).acquire()


def test_lock_goes_to_one_at_a_time_however_many_wait():
    inside, most, done = 0, 0, 0
    counting = threading.Lock()

    def use():
        nonlocal inside, most, done
        for _ in range(3):
            lock = LoadLock("one", patience=60)
            lock.acquire()
            with counting:
                inside += 1
                most = max(most, inside)
            time.sleep(0.005)
            with counting:
                inside -= 1
                done += 1
            lock.release()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (most, done) == (1, 12)


def test_killed_process_lets_the_next_one_in(directory):
    program = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from sharecons.spark.load_lock import LoadLock
LoadLock("one").acquire()
print("locked", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(directory)], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"locked\n"
    with pytest.raises(LedgerTakenError, match=f"process {process.pid} on"):
        LoadLock("one", patience=0).acquire()
    process.kill()
    process.wait()
    process.stdout.close()

    LoadLock("one", patience=10).acquire()


def test_directory_that_takes_no_lock_is_done_without(directory, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(directory / "missing"))
    lock = LoadLock("one", patience=0)
    lock.acquire()
    lock.release()


def test_link_of_somebody_else_is_not_followed(directory):
    target = directory / "precious"
    target.write_text("mine")
    lock = LoadLock("one", patience=0)
    lock._path.symlink_to(target)
    lock.acquire()
    lock.release()

    assert target.read_text() == "mine"


def test_place_without_locks_is_not_taken_over_by_another_process_of_the_load():
    shelf = Shelf()
    store = Store(shelf, lock=LoadLock("one", patience=0))
    store.load("billing")
    other = Store(shelf, lock=LoadLock("one", patience=0))

    with pytest.raises(LedgerTakenError, match="already reads the stream of this"):
        other.load("billing")
    store.check()
    store.close()
    other.load("billing")
