"""One broker's process and its directory."""

import resource
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from sharecons.testing.kafka.cleanup import CleanupProcess

__all__ = ["Node", "stop_all"]

TAIL_SIZE: Final = 64 * 1024  # bytes: more than the longest tail of lines requested


class Node:
    """A broker that can be started, stopped and killed any number of times."""

    def __init__(self, node_id: int, directory: Path, cleanup: CleanupProcess) -> None:
        self.node_id = node_id
        self.data = directory / "data"
        self.properties = directory / "server.properties"
        self._log = directory / "kafka.log"
        self._cleanup = cleanup
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, command: Sequence[str]) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # no Ctrl-C from the terminal
            )
        self._cleanup.kill(self._process.pid)

    def terminate(self) -> None:
        """Make the broker shut down; call `wait` next."""
        if self.running and self._process:
            self._process.terminate()

    def pause(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGCONT)

    def fill_disk(self) -> None:
        """Make each write that grows a file fail, for the rest of this process."""
        if self._process:
            limits = (0, resource.RLIM_INFINITY)
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, limits)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self.wait(None)

    def wait(self, timeout: float | None) -> None:
        """Wait for the end of the process, and kill it after the timeout."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._cleanup.spare(self._process.pid)
        self._process = None

    def log_tail(self, lines: int) -> str:
        try:
            content = self._log.read_bytes()[-TAIL_SIZE:]
        except OSError:
            return ""
        return "\n".join(content.decode(errors="replace").splitlines()[-lines:])


def stop_all(nodes: Collection[Node], timeout: float) -> None:
    """Stop brokers together; kill each one that takes longer than `timeout` seconds."""
    for node in nodes:
        node.terminate()
    deadline = time.monotonic() + timeout
    for node in nodes:
        node.wait(max(0.0, deadline - time.monotonic()))
