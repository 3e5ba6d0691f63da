"""Driver programs as processes that tests start and kill."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.spark.spark_session import environment

__all__ = ["Program"]


class Program:
    """A driver program in a session of its own, with its JVM and its workers."""

    def __init__(self, said, dies=None, chance=0.0):
        self.dies = dies
        faults = {"SHARECONS_TEST_CHANCE": str(chance)}
        if dies is not None and ":" in dies:
            faults["SHARECONS_TEST_DIES"] = dies
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.driver_program", json.dumps(said)],
            cwd=said["base"],
            env={**os.environ, **environment(), **faults, "TZ": "UTC"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.printed = []
        # Read to its end, whoever waits: a full pipe would hold Spark up.
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self):
        for line in self.process.stdout:
            self.printed.append(line)

    def go(self):
        """Begin the query; wait until it runs, or has died where it was to."""
        self.wait_for("ready")
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.wait_for("running", may_die=self.dies is not None)

    def wait_for(self, line, within=300, may_die=False):
        end = time.monotonic() + within
        while f"{line}\n" not in self.printed:
            if may_die and self.process.poll() == -signal.SIGKILL:
                return
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, f"no {line!r}, but {self.said()}"
            time.sleep(0.05)

    def wait(self, within):
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def kill(self, number=signal.SIGKILL):
        """Kill the program, its JVM, and what has the member and the ledger."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(60)
        self.process.stdin.close()
        self.reading.join(60)
        self.process.stdout.close()

    def kill_jvm(self):
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    os.getpgid(int(path.name)) == self.process.pid
                    and (path / "comm").read_text() == "java\n"
                ):
                    os.kill(int(path.name), signal.SIGKILL)

    def finish(self, within=300):
        """Wait for its end; tells whether it ended well."""
        self.process.wait(within)
        self.reading.join(10)
        return self.process.returncode == 0

    def said(self):
        return "".join(self.printed)[-5000:]
