"""The program, for `python -m sharecons.spark.pipeline` and spark-submit.

Signal handlers come first. Importing Spark takes a second, so it is imported later.
"""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sharecons.stop_signals import received_signals

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a pipeline until it ends, fails or is stopped; return the exit code.

    The command `page` makes a page of runs instead, without Spark.

    0: everything was read, or a signal stopped the run; 1: it failed; 2: an option is
    invalid; 3: no broker can be reached; 4: authentication or authorization failed; 5:
    the brokers are too old.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["page"]:
        from sharecons.spark.pipeline.page_command import run_page_command

        return run_page_command(given[1:])
    with _stop_at_signals() as stop:
        from sharecons.spark.pipeline.program import run_program

        return run_program(given, stop)


@contextmanager
def _stop_at_signals() -> Iterator[threading.Event]:
    """Make SIGINT and SIGTERM set an event; a second signal ends the program.

    The handlers do nothing else, because calls to Spark are not reentrant and this
    thread might be in one.
    """
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in received_signals()}

    def handle(number: int, frame: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    code = main()
    # While Spark ends, Ctrl-C would print a traceback.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)
