"""A process for the tests of the supervisor: `python -m tests.cli.run.supervised`.

Arguments: a directory, an index, and what the process does. It appends lines to the
file of its index: start PID, signal NAME, lost.
"""

import os
import signal
import sys
from pathlib import Path

from sharecons.cli.run.lifeline import watch_lifeline


def main(directory: str, index: str, mode: str, _: str = "") -> None:
    path = Path(directory) / index

    def write(line: str) -> None:
        with path.open("a") as file:
            file.write(f"{line}\n")

    def stop(number: int, _: object) -> None:
        write(f"signal {signal.Signals(number).name}")
        if mode == "stubborn":
            return
        os._exit(0)  # works even while the interpreter exits

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    watch_lifeline(lambda: write("lost"))
    write(f"start {os.getpid()}")
    if mode.startswith("exit"):
        sys.exit(int(mode.removeprefix("exit")))
    while True:
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
