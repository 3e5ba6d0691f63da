"""The lock that lets one process at a time acquire for a load()."""

import os
import subprocess
import sys
import tempfile
import threading

import pytest

from sharecons.spark.load_lock import Address, Holder, LoadLock
from sharecons.spark.store import Store
from tests.spark.memory_storage import MemoryStorage

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no flock")


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_try_acquire_returns_the_holder():
    first, second = LoadLock("one"), LoadLock("one")
    assert first.try_acquire() is None

    holder = second.try_acquire()
    assert holder.name.startswith(f"process {os.getpid()} on ")
    assert holder.address is None
    first.publish(Address(1234, "secret"))
    assert second.try_acquire() == Holder(holder.name, Address(1234, "secret"))


def test_lock_file_is_readable_by_its_user_only(directory):
    lock = LoadLock("one")
    lock.acquire()
    (file,) = directory.iterdir()

    assert file.stat().st_mode & 0o077 == 0


def test_acquire_waits_for_the_lock(rejections):
    first, second = LoadLock("one"), LoadLock("one")
    first.acquire()
    waiting = threading.Thread(target=second.acquire)
    waiting.start()
    for _ in range(2):
        assert rejections.acquire(timeout=30)
    assert waiting.is_alive()
    first.release()
    waiting.join(30)

    assert not waiting.is_alive()


def test_locks_of_two_loads_are_independent():
    LoadLock("one").acquire()

    assert LoadLock("two").try_acquire() is None


def test_release_removes_the_lock_file(directory):
    lock = LoadLock("one")
    lock.acquire()
    assert list(directory.iterdir())
    lock.release()
    lock.release()

    assert not list(directory.iterdir())
    assert LoadLock("one").try_acquire() is None


def test_lock_has_one_holder_at_a_time(monkeypatch):
    monkeypatch.setattr("sharecons.spark.load_lock.RETRY", 0.001)
    inside, maximum, done = 0, 0, 0
    counting = threading.Lock()

    def use():
        nonlocal inside, maximum, done
        for _ in range(3):
            lock = LoadLock("one")
            lock.acquire()
            with counting:
                inside += 1
                maximum = max(maximum, inside)
            # Another lock of this load cannot be acquired meanwhile.
            assert LoadLock("one").try_acquire() is not None
            with counting:
                inside -= 1
                done += 1
            lock.release()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (maximum, done) == (1, 12)


def test_lock_of_a_killed_process_is_free(directory):
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
    assert LoadLock("one").try_acquire().name.startswith(f"process {process.pid} on")
    process.kill()
    process.wait()
    process.stdout.close()

    assert LoadLock("one").try_acquire() is None


def test_try_acquire_without_a_directory_succeeds(directory, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(directory / "missing"))
    lock = LoadLock("one")
    assert lock.try_acquire() is None
    lock.publish(Address(1234, "secret"))
    lock.release()


def test_symbolic_link_of_another_user_is_not_followed(directory):
    target = directory / "target-file"
    target.write_text("content")
    lock = LoadLock("one")
    lock.acquire()
    (path,) = directory.glob(".sharecons-*.lock")
    lock.release()
    path.symlink_to(target)
    lock.acquire()
    lock.release()

    assert target.read_text() == "content"


def test_load_lock_excludes_processes_on_a_storage_without_locks(rejections):
    storage = MemoryStorage()
    store = Store(storage, lock=LoadLock("one"))
    store.open("billing")
    other = Store(storage, lock=LoadLock("one"))
    waiting = threading.Thread(target=other.open, args=("billing",))
    waiting.start()
    for _ in range(2):
        assert rejections.acquire(timeout=30)

    assert waiting.is_alive()
    store.check_ownership()
    store.close()
    waiting.join(30)
    assert not waiting.is_alive()
