"""Kafka's command line tools, by their names in its bin directory."""

import subprocess

from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import VERSION

__all__ = ["JavaTools"]

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
# Compilation for long runs takes more time than it saves within a second.
QUICK = ("-Xmx256m", "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
TIMEOUT = 60.0


class JavaTools:
    """Runs tools on one Kafka."""

    def __init__(self, bootstrap_servers):
        self._bootstrap_servers = bootstrap_servers
        self._jars = KafkaCluster(VERSION)

    def run(self, tool, *args, stdin=None, harmless=None):
        """Run a tool that should succeed; return its lines.

        Args:
            harmless: the text of a warning that is no failure, or None.
        """
        ended = self._ended(tool, args, stdin)
        everything = ended.stdout + ended.stderr
        assert 0 == ended.returncode, everything
        for line in everything.splitlines():
            if harmless is None or harmless not in line:
                for marker in ("WARN", "ERROR", "Exception"):
                    assert marker not in line, everything
        return [line for line in ended.stdout.splitlines() if line.strip()]

    def run_failing(self, tool, *args):
        """Run a tool that should fail; return what it prints."""
        ended = self._ended(tool, args)
        return ended.stdout + ended.stderr

    def table(self, tool, *args):
        """Run a tool that prints a table; return its rows as mappings."""
        head, *rows = (line.split() for line in self.run(tool, *args))
        return [dict(zip(head, row, strict=False)) for row in rows]

    def _ended(self, tool, args, stdin=None):
        return subprocess.run(
            self.command(tool, *args),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )

    def command(self, tool, *args):
        java, *rest = self._jars.java_command(MAIN[tool])
        server = ("--bootstrap-server", self._bootstrap_servers)
        return [java, *QUICK, *rest, *server, *args]
