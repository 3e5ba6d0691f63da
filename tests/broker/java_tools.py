"""Kafka's command line tools, by their names in its bin directory.

They run in one Java for each process of pytest, since a Java takes a second or two of
CPU time to start. Tools.java is compiled as it starts; a Java without a compiler starts
a process for each tool.
"""

import atexit
import struct
import subprocess
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from subprocess import PIPE, CompletedProcess

from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import VERSION

__all__ = ["TIMEOUT", "JavaTools"]

SOURCE = Path(__file__).parent / "Tools.java"

PACKAGE = "org.apache.kafka.tools"
MAIN = {
    "kafka-acls": f"{PACKAGE}.AclCommand",
    "kafka-client-metrics": f"{PACKAGE}.ClientMetricsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{PACKAGE}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{PACKAGE}.ConsoleProducer",
    "kafka-console-share-consumer": f"{PACKAGE}.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": f"{PACKAGE}.consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets": f"{PACKAGE}.GetOffsetShell",
    "kafka-groups": f"{PACKAGE}.GroupsCommand",
    "kafka-share-consumer-perf-test": f"{PACKAGE}.ShareConsumerPerformance",
    "kafka-share-groups": f"{PACKAGE}.consumer.group.ShareGroupCommand",
    "kafka-topics": f"{PACKAGE}.TopicCommand",
    "kafka-verifiable-producer": f"{PACKAGE}.VerifiableProducer",
    "kafka-verifiable-share-consumer": f"{PACKAGE}.VerifiableShareConsumer",
}
# It waits for its last responses in a shutdown hook of the Java itself.
ALONE = {"kafka-verifiable-producer"}
# Compilation for long runs takes more time than it saves within a second.
QUICK = ("-Xmx256m", "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
TIMEOUT = 60.0


@cache
def java_command():
    """Return the command of a Java with the jars of Kafka's tools, without a class."""
    java, *rest = KafkaCluster(VERSION).java_command("")[:-1]
    return [java, *QUICK, *rest]


class _Java:
    """A Java that runs one tool after the other; it ends with its stdin."""

    def __init__(self):
        command = [*java_command(), str(SOURCE)]
        self._process = subprocess.Popen(
            command, stdin=PIPE, stdout=PIPE, stderr=subprocess.DEVNULL
        )

    def run(self, main_class, args, stdin):
        """Run a tool; return its exit code, stdout and stderr.

        Raises:
            OSError: the Java has no compiler, or the tool has not ended in time.
        """
        parts = [main_class.encode(), *(each.encode() for each in args), stdin]
        timer = threading.Timer(TIMEOUT, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(struct.pack(">i", len(parts)))
            for part in parts:
                self._process.stdin.write(struct.pack(">i", len(part)) + part)
            self._process.stdin.flush()
            return self._number(), self._bytes(), self._bytes()
        finally:
            timer.cancel()

    def _bytes(self):
        return self._process.stdout.read(self._number())

    def _number(self):
        octets = self._process.stdout.read(4)
        if len(octets) < 4:
            raise BrokenPipeError("the Java has ended")
        return struct.unpack(">i", octets)[0]

    def close(self):
        self._process.kill()
        with suppress(BrokenPipeError):  # closing flushes
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@cache
def _java():
    java = _Java()
    atexit.register(java.close)
    return java


class JavaTools:
    """Runs tools on one Kafka."""

    def __init__(self, bootstrap_servers):
        self._server = ("--bootstrap-server", bootstrap_servers)

    def run(self, tool, *args, stdin="", harmless=None):
        """Run a tool that should succeed; return its lines.

        Args:
            harmless: the text of a warning that is no failure, or None.
        """
        ended = self.ended(tool, *args, stdin=stdin.encode())
        everything = (ended.stdout + ended.stderr).decode()
        assert 0 == ended.returncode, everything
        for line in everything.splitlines():
            if harmless is None or harmless not in line:
                for marker in ("WARN", "ERROR", "Exception"):
                    assert marker not in line, everything
        return [line for line in ended.stdout.decode().splitlines() if line.strip()]

    def run_failing(self, tool, *args):
        """Run a tool that should fail; return what it prints."""
        ended = self.ended(tool, *args)
        return (ended.stdout + ended.stderr).decode()

    def table(self, tool, *args):
        """Run a tool that prints a table; return its rows as mappings."""
        head, *rows = (line.split() for line in self.run(tool, *args))
        return [dict(zip(head, row, strict=False)) for row in rows]

    def ended(self, tool, *args, stdin=b""):
        """Run a tool; return its exit code and its output, in bytes."""
        arguments = (*self._server, *args)
        if tool not in ALONE:
            with suppress(OSError):
                result = _java().run(MAIN[tool], arguments, stdin)
                return CompletedProcess(arguments, *result)
        return subprocess.run(
            self.command(tool, *args),
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )

    def command(self, tool, *args):
        """Return the command that runs a tool in a process of its own."""
        return [*java_command(), MAIN[tool], *self._server, *args]
