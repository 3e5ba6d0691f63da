"""Run Kafka's kafka-share-groups tool many times in one Java process."""

import subprocess
from contextlib import suppress
from pathlib import Path

from tests.broker.java_tools import JavaTools

__all__ = ["JavaShareGroups"]

SOURCE = Path(__file__).parent / "Tools.java"


class JavaShareGroups:
    """Runs kafka-share-groups; a Java without a compiler starts a process each time."""

    def __init__(self, bootstrap_servers):
        self._tools = JavaTools(bootstrap_servers)
        self._server = ["--bootstrap-server", bootstrap_servers]
        self._process = None

    def __enter__(self):
        *java, _, _, _ = self._tools.command("kafka-share-groups")
        self._process = subprocess.Popen(
            [*java, str(SOURCE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *_):
        self._process.kill()
        # A Java without a compiler has exited; closing flushes to its broken pipe.
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def run(self, *args):
        """Run the tool; return its exit code and its output."""
        try:
            return self._run_in_process(args)
        except (BrokenPipeError, ValueError):
            ended = subprocess.run(
                self._tools.command("kafka-share-groups", *args),
                capture_output=True,
                text=True,
                timeout=60,
            )
            return ended.returncode, ended.stdout + ended.stderr

    def _run_in_process(self, args):
        line = "\t".join([*self._server, *args])
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        _, code, _, size = self._process.stdout.readline().split()
        return int(code), self._process.stdout.read(int(size)).decode()
