"""A pipe by which child processes notice that their supervisor has died.

The supervisor holds the only write end, and each child reads from the pipe, which it
has as standard input. The system closes the write end when the supervisor ends, even by
SIGKILL; then each child stops as after SIGTERM. This works on each system with pipes.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["lifeline", "watch_lifeline"]

STDIN: Final = 0


@contextmanager
def lifeline() -> Iterator[int]:
    """Yield the file descriptor that children get as standard input."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(read_end)
        os.close(write_end)


def watch_lifeline(on_lost: Callable[[], None]) -> None:
    """Stop this process when its supervisor dies.

    Sends SIGTERM to this process, then calls `on_lost`, in a thread. Standard input is
    empty afterwards.
    """
    read_end = os.dup(STDIN)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, STDIN)
    os.close(devnull)

    def watch() -> None:
        while os.read(read_end, 1):
            pass
        on_lost()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="sharecons-lifeline", daemon=True).start()
