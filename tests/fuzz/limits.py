"""The limits of one execution: CPU time, and memory.

A loop without an end is interrupted by a signal of the CPU timer. Code in C cannot be
interrupted, so its time is compared afterwards. `tracemalloc` measures what Python
allocates, and the peak of the resident memory what libraries write to.
"""

import resource
import signal
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

__all__ = ["LimitError", "limited"]

KIBIBYTE: Final = 1 << 10

ADDRESS_SPACE: Final = 2 << 30
"""Bytes that an execution can add to the address space: more is a MemoryError, instead
of the end of other programs."""

REPEATED: Final = 1.0
"""Seconds between two interrupts: longer than any code takes to end."""

SOON: Final = 0.001
GC_CALLBACK: Final = "gc_callback"
"""The name of a function of Hypothesis."""

RESIDENT_TOLERANCE: Final = 32 << 20
"""Bytes by which the resident memory can grow beyond the limit: the allocators' own."""


class LimitError(BaseException):
    """An execution took too long, or too much memory.

    Not an Exception: the code that is tested must not handle it.
    """


class _Interrupt(KeyboardInterrupt):
    """Ends an execution: event loops let only this and SystemExit through."""


@contextmanager
def limited(*, seconds: float, memory: int, traces: bool = True) -> Iterator[None]:
    """Raise LimitError if the block takes more CPU time or more memory.

    Args:
        seconds: of CPU time, of all threads.
        memory: bytes.
        traces: whether to trace allocations, or to look at the resident memory only.
    """
    began, resident = time.process_time(), _resident()
    if traces:
        tracemalloc.start()
    try:
        with _timer(seconds), _address_space():
            yield
    except _Interrupt:
        # Again, since it can interrupt the end of the timer itself.
        signal.setitimer(signal.ITIMER_PROF, 0)
        raise LimitError(f"more than {seconds:g} s of CPU time") from None
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    if time.process_time() - began > seconds:
        raise LimitError(f"more than {seconds:g} s of CPU time")
    grown = _resident() - resident
    if peak > memory or grown > memory + RESIDENT_TOLERANCE:
        size = max(peak, grown) >> 20
        raise LimitError(f"{size} MiB of memory, more than {memory >> 20}")


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE


@contextmanager
def _address_space() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def _timer(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    is_armed = True
    ended = threading.Event()
    caller = threading.get_ident()

    def interrupt_again() -> None:
        while not ended.wait(REPEATED):
            signal.pthread_kill(caller, signal.SIGPROF)

    def interrupt(number: int, frame: Any) -> None:
        if not is_armed:
            return
        if frame is not None and frame.f_code.co_name == GC_CALLBACK:
            # Python ignores what a callback of the garbage collector raises.
            signal.setitimer(signal.ITIMER_PROF, SOON, REPEATED)
            return
        # In real time: an event loop that was interrupted while it scheduled a task can
        # wait for this task without end, which takes no CPU time.
        threading.Thread(target=interrupt_again, daemon=True).start()
        raise _Interrupt

    before = signal.signal(signal.SIGPROF, interrupt)
    # Repeated, in case the code that is interrupted ignores the first one.
    signal.setitimer(signal.ITIMER_PROF, seconds, REPEATED)
    try:
        yield
    finally:
        is_armed = False
        ended.set()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
