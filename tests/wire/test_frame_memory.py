"""Memory of large frames: used again, but never while something refers to it."""

import platform
import subprocess
import sys
import threading

import pytest

from sharecons.wire.codec.frame_memory import LIMIT, UNIT, FrameMemory

MEGABYTE = 1 << 20

FETCHES = """
import resource
from sharecons.wire.codec.frame_memory import FrameMemory

memory = FrameMemory()

def fetch():
    frame = memory.take(5 << 20)
    frame[::4096] = bytes(len(frame) // 4096)
    values = [frame[i : i + 10240].tobytes() for i in range(0, len(frame), 10240)]

def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(5):
    fetch()
before = page_faults()
for _ in range(20):
    fetch()
print((page_faults() - before) // 20)
"""


def fill(view, byte):
    view[:] = bytes([byte]) * len(view)
    return view


def test_memory_has_the_requested_size():
    memory = FrameMemory()

    assert [1, UNIT, UNIT + 1] == [len(memory.take(n)) for n in (1, UNIT, UNIT + 1)]


def test_released_memory_is_used_again():
    memory = FrameMemory()
    fill(memory.take(5 * MEGABYTE), 7)

    assert memory.take(5 * MEGABYTE - 1000) == b"\7" * (5 * MEGABYTE - 1000)


@pytest.mark.parametrize(
    "part",
    [
        lambda view: view,
        lambda view: view[10:20],
        lambda view: view.toreadonly()[10:20],
        lambda view: memoryview(view[10:20])[1:],
    ],
    ids=["frame", "slice", "read-only", "slice of a slice"],
)
def test_memory_with_a_view_is_not_used_again(part):
    memory = FrameMemory()
    kept = part(fill(memory.take(MEGABYTE), 7))

    fill(memory.take(MEGABYTE), 8)

    assert set(kept) == {7}
    del kept
    taken = [memory.take(MEGABYTE), memory.take(MEGABYTE)]
    assert {7, 8} == {view[0] for view in taken}


def test_memory_of_a_large_frame_is_not_used_for_a_small_one():
    memory = FrameMemory()
    fill(memory.take(8 * MEGABYTE), 7)

    small = memory.take(MEGABYTE)

    assert not any(small)
    assert len(small.obj) < 2 * MEGABYTE


def test_what_is_kept_is_limited():
    memory = FrameMemory()
    frames = [fill(memory.take(8 * MEGABYTE), 7) for _ in range(6)]
    del frames

    again = [memory.take(8 * MEGABYTE) for _ in range(6)]

    assert LIMIT // (8 * MEGABYTE) == sum(view[0] == 7 for view in again)


def test_memory_of_another_size_makes_room():
    memory = FrameMemory()
    frames = [fill(memory.take(8 * MEGABYTE), 7) for _ in range(4)]
    kept = frames[0]
    del frames

    fill(memory.take(2 * MEGABYTE), 8)

    assert memory.take(2 * MEGABYTE)[0] == 8
    assert memory.take(8 * MEGABYTE)[0] == 0
    assert set(kept[:10]) == {7}


def test_frame_above_the_limit_is_not_kept():
    memory = FrameMemory()
    fill(memory.take(LIMIT + UNIT), 7)

    assert memory.take(LIMIT + UNIT)[0] == 0


def test_threads_never_share_memory():
    memory = FrameMemory()
    shared = []

    def work(byte):
        for _ in range(300):
            view = fill(memory.take(1000), byte)
            if set(view) != {byte}:
                shared.append(byte)

    threads = [threading.Thread(target=work, args=(byte,)) for byte in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == shared


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's thresholds")
def test_a_fetch_needs_no_new_pages_once_the_memory_is_kept():
    run = subprocess.run(
        [sys.executable, "-c", FETCHES], capture_output=True, text=True, check=True
    )

    assert int(run.stdout) < 20  # a frame has 1,280 pages, its values have as many
