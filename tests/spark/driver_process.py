"""Driver programs as processes that tests start and kill."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from tests.spark.spark_session import environment

__all__ = ["DriverProcess"]


class DriverProcess:
    """A running `driver_program`, with its JVM and workers, in its own session."""

    def __init__(self, config, kill_at=None, chance=0.0):
        self.kill_at = kill_at
        faults = {"SHARECONS_TEST_CHANCE": str(chance)}
        if kill_at is not None and ":" in kill_at:
            faults["SHARECONS_TEST_KILL"] = kill_at
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.driver_program", json.dumps(config)],
            cwd=config["base"],
            env={**os.environ, **environment(), **faults, "TZ": "UTC"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.printed = []
        self.has_ended = False
        self.changed = threading.Condition()
        # Always read to the end: a full pipe would block Spark.
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.printed.append(line)
                self.changed.notify_all()
        self.process.wait()
        with self.changed:
            self.has_ended = True
            self.changed.notify_all()

    def start_query(self):
        """Start the query; wait until it runs, or was killed at its point."""
        self.wait_for("ready")
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.wait_for("running", allow_kill=self.kill_at is not None)

    def wait_for(self, line, timeout=300, allow_kill=False):
        """Wait until the program has printed a line.

        Args:
            allow_kill: also return if the program was killed.
        """

        def is_over():
            return self.has_ended or f"{line}\n" in self.printed

        with self.changed:
            assert self.changed.wait_for(is_over, timeout), self.output()
            if f"{line}\n" not in self.printed:
                assert allow_kill, self.output()
                assert self.process.returncode == -signal.SIGKILL, self.output()

    def wait(self, timeout):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def kill(self, number=signal.SIGKILL):
        """Kill the program, its JVM, and the process of the member."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(60)
        self.process.stdin.close()
        self.reader.join(60)
        self.process.stdout.close()

    def kill_jvm(self):
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    os.getpgid(int(path.name)) == self.process.pid
                    and (path / "comm").read_text() == "java\n"
                ):
                    os.kill(int(path.name), signal.SIGKILL)

    def finish(self, timeout=300):
        """Wait for the end; return whether it succeeded."""
        self.process.wait(timeout)
        self.reader.join(10)
        return self.process.returncode == 0

    def output(self):
        return "".join(self.printed)[-5000:]
