"""One real Kafka, and the proxies that count what passes."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from sharecons.testing.kafka import KafkaCluster
from sharecons.testing.kafka.ports import free_ports
from tests.bench.program import BROKER_JAVA_OPTIONS
from tests.chaos.proxy import Proxies
from tests.limits.members import Usage, usage_of
from tests.limits.traffic import ConnectionTraffic, Traffic

__all__ = ["Broker", "running_broker"]

VERSION: Final = "4.4.0"
LISTENERS: Final = ("MEMBERS", "TOOLS")
MAX_GROUP: Final = {"group.share.max.size": "1000"}
TIMEOUT: Final = 120.0


@dataclass(frozen=True)
class Broker:
    """A running broker.

    Attributes:
        direct: its address, for load and the crowd, which are not counted.
        addresses: of the proxies, by the names of LISTENERS.
        traffic: that has passed each of them.
        process: the broker's.
    """

    direct: str
    addresses: Mapping[str, str]
    traffic: Mapping[str, Traffic]
    process: psutil.Process

    def usage(self) -> Usage:
        return usage_of([self.process])

    def cpu_at_rest(self, seconds: float) -> float:
        """Return its seconds of CPU per second; nothing must use it."""
        before = self.usage()[0]
        time.sleep(seconds)
        return (self.usage()[0] - before) / seconds

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Create topics with these numbers of partitions."""
        client: Any = AdminClient({"bootstrap.servers": self.direct})
        new = [NewTopic(name, count, 1) for name, count in topics.items()]
        created = client.create_topics(new, operation_timeout=TIMEOUT)
        for each in created.values():
            each.result(TIMEOUT)


@contextmanager
def running_broker() -> Iterator[Broker]:
    """Run a broker during the block."""
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    traffic = {name: Traffic.none() for name in LISTENERS}
    with KafkaCluster(
        VERSION,
        config=MAX_GROUP,
        java_options=BROKER_JAVA_OPTIONS,
        listeners=dict.fromkeys(LISTENERS, "PLAINTEXT"),
        advertised={name: {1: port} for name, port in ports.items()},
    ) as kafka:
        members, tools = (
            Proxies(
                {1: ports[name]},
                {1: int(kafka.listener(name).rpartition(":")[2])},
                lambda counted=traffic[name]: ConnectionTraffic(counted).on_bytes,
            )
            for name in LISTENERS
        )
        with members, tools:
            yield Broker(
                kafka.bootstrap_servers,
                {name: f"127.0.0.1:{port}" for name, port in ports.items()},
                traffic,
                _process(),
            )


def _process() -> psutil.Process:
    """Return the only broker that this process has started."""
    (found,) = (
        each
        for each in psutil.Process().children(recursive=True)
        if "kafka.Kafka" in each.cmdline()
    )
    return found
