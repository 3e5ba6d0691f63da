"""`sharecons dead-letters redrive`, again and again while a run lasts."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

from sharecons.testing.kafka.cleanup import CleanupProcess

__all__ = ["Redriver"]

PAUSE: Final = 5.0
PATIENCE: Final = 90.0


class Redriver:
    """Redrives the dead letters of a topic in processes, of which some are killed.

    Attributes:
        problems: redrives that did not end as documented.
        runs, ended: how many processes there were, and were ended early.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        directory: Path,
        cleanup: CleanupProcess,
        seed: int,
    ) -> None:
        self.problems: list[str] = []
        self.runs = 0
        self.ended = 0
        self._command = [
            *(sys.executable, "-m", "sharecons", "dead-letters", "redrive", topic),
            *("--bootstrap-server", servers, "--json"),
        ]
        self._log = directory / "redrives.log"
        self._errors = (directory / "redrives.errors").open("ab")
        self._cleanup = cleanup
        self._chance = random.Random(f"redrive {seed}")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the runs that are disturbed."""
        self._stopping.set()
        self._thread.join()

    def redrive(self) -> int:
        """Redrive without disturbance; return how many were written, or -1."""
        process = self._start()
        output = self._wait(process, None)
        self._note(process, output)
        if process.returncode:
            return -1
        (summary,) = json.loads(output)
        return int(summary["redriven"] + summary["already_written"])

    def _run(self) -> None:
        while not self._stopping.wait(PAUSE):
            process = self._start()
            end = self._chance.choice((signal.SIGKILL, signal.SIGINT, None, None))
            output = self._wait(process, end)
            self._note(process, output)

    def _wait(self, process: subprocess.Popen[str], end: int | None) -> str:
        seconds = PATIENCE if end is None else self._chance.uniform(0.3, 4.0)
        try:
            return process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            if end is None:
                self.problems.append(f"a redrive did not end in {PATIENCE:g} s")
            process.send_signal(end or signal.SIGABRT)
            self.ended += 1
        try:
            return process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            self.problems.append(f"a redrive ignored a signal for {PATIENCE:g} s")
            process.kill()
            return process.communicate()[0]

    def _start(self) -> subprocess.Popen[str]:
        self.runs += 1
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        self._cleanup.kill(process.pid)
        return process

    def _note(self, process: subprocess.Popen[str], output: str) -> None:
        self._cleanup.spare(process.pid)
        with self._log.open("a") as log:
            log.write(f"{time.monotonic():.1f} {process.returncode}: {output}\n")
