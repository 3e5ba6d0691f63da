"""A Kafka of one or more brokers, each also a voter of the KRaft quorum."""

import logging
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from sharecons.testing.kafka.cleanup import CleanupProcess
from sharecons.testing.kafka.errors import LaunchError
from sharecons.testing.kafka.jars import fetch_jars
from sharecons.testing.kafka.java import find_java
from sharecons.testing.kafka.node import Node, stop_all
from sharecons.testing.kafka.ports import HOST, free_ports, is_free
from sharecons.testing.kafka.readiness import wait_until_ready
from sharecons.testing.kafka.settings import (
    Listeners,
    defaults,
    format_properties,
    node_settings,
)
from sharecons.testing.kafka.storage import format_storage, random_id

__all__ = ["KafkaCluster"]

# Measured from one broker's start to its first response: 2.05 s with the JVM's
# defaults, 1.55 s with these. For throughput, pass others.
QUICK_START: Final = (
    "-Xmx350m",
    "-Xshare:auto",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
)
LOGGER: Final = "-Dorg.slf4j.simpleLogger"
BROKER_LOG: Final = (
    f"{LOGGER}.showDateTime=true",
    f"{LOGGER}.dateTimeFormat=HH:mm:ss.SSS",
    # Each setting is logged five times: nine in ten lines of a log's tail.
    f"{LOGGER}.log.org.apache.kafka.common.config.AbstractConfig=warn",
)
TOOL_LOG: Final = (f"{LOGGER}.defaultLogLevel=warn",)

# A single broker stops in 0.3 s. Of several, the quorum's leader waits 5 s to hand over
# to voters that have stopped as well.
STOP_TIMEOUT: Final = 3.0
HANDOVER_TIMEOUT: Final = 20.0  # the other brokers run: it hands over its partitions

log = logging.getLogger("sharecons.testing.kafka")


class KafkaCluster:
    """A real Kafka on this machine, which runs as long as the `with` block.

    Clients need no credentials, can do everything that no ACL forbids, and must create
    their topics. Brokers keep their ports when they are restarted. However this process
    ends, its brokers are stopped.

    Args:
        version: The version of Kafka; 4.1 and later have share groups.
        brokers: The number of brokers; with three or more, one can be stopped.
        config: Settings of the brokers, which override the defaults for tests.
        directory: The directory of data and logs, which is kept; by default a temporary
            directory, which is removed at the end.
        port: The first broker's port; the others follow. By default free ports.
        patience: Seconds in which a broker has to start.
        java_options: Options of the brokers' JVMs. The default starts quickly and runs
            at half speed.
        listeners: More listeners: their names, and the security protocol of each.
            `config` has their other settings.
        classpath: Directories and jars with more classes for the brokers, such as a
            reporter of metrics.
        advertised: Ports of proxies before a listener, by its name and the node id:
            brokers return them to clients of this listener.

    Attributes:
        version: The version of brokers that start from now on: for a rolling upgrade,
            change it, and stop and start one broker after the other.
    """

    def __init__(
        self,
        version: str = "4.3.0",
        brokers: int = 1,
        config: Mapping[str, str] | None = None,
        directory: Path | None = None,
        *,
        port: int | None = None,
        patience: float = 60.0,
        java_options: Sequence[str] = QUICK_START,
        listeners: Mapping[str, str] | None = None,
        classpath: Sequence[Path] = (),
        advertised: Mapping[str, Mapping[int, int]] | None = None,
    ) -> None:
        self.version = version
        self._ports = dict(enumerate(_client_ports(brokers, port), start=1))
        quorum = free_ports(brokers, beside=self._ports.values())
        self._controllers = dict(enumerate(quorum, start=1))
        self._listeners = self._listener_ports(listeners or {})
        self._advertised = dict(advertised or {})
        self._config = dict(config or {})
        self._directory = directory
        self._start_timeout = patience
        self._java_options = java_options
        self._classpath = tuple(classpath)
        self._cluster_id = random_id()
        self._nodes: dict[int, Node] = {}
        self._cleanup: CleanupProcess | None = None
        self._temporary: Path | None = None

    @property
    def brokers(self) -> Mapping[int, str]:
        """The address of every broker, by node id; node ids start at 1."""
        return {node_id: f"{HOST}:{port}" for node_id, port in self._ports.items()}

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for a client's configuration."""
        return ",".join(self.brokers.values())

    def listener(self, name: str) -> str:
        """Return the addresses of all brokers at another listener."""
        for (named, _), ports in self._listeners.items():
            if named == name:
                return ",".join(f"{HOST}:{port}" for port in ports.values())
        raise KeyError(name)

    @property
    def running(self) -> frozenset[int]:
        """The node ids of the brokers whose processes run."""
        return frozenset(key for key, node in self._nodes.items() if node.running)

    def start(self) -> None:
        """Start all brokers and wait until each knows all others.

        Raises:
            LaunchError: Kafka cannot be downloaded or does not start; all brokers are
                stopped.
        """
        try:
            self._prepare()
            self.start_broker(*self._nodes)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all brokers, by force after 3 s, and remove temporary data."""
        nodes, self._nodes = self._nodes, {}
        stop_all(nodes.values(), STOP_TIMEOUT)
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
        if self._cleanup:
            self._cleanup.close()
        self._temporary = self._cleanup = None

    def start_broker(self, *node_ids: int) -> None:
        """Start the stopped ones of these brokers, and wait until all are ready.

        A killed broker can register again when the controller has fenced it, 5 s after
        its end.

        Raises:
            LaunchError: a broker is not ready in time, or has ended.
        """
        for node in (self._nodes[node_id] for node_id in node_ids):
            if not node.running:
                node.start(self._broker_command(node))
        wait_until_ready(self._nodes, self._ports, node_ids, self._start_timeout)

    def stop_broker(self, node_id: int) -> None:
        """Stop one broker; it hands its partitions over to other leaders."""
        self._nodes[node_id].terminate()
        self._nodes[node_id].wait(HANDOVER_TIMEOUT)

    def kill(self, node_id: int) -> None:
        """Kill one broker, as a power failure would."""
        self._nodes[node_id].kill()

    def pause(self, node_id: int) -> None:
        """Pause one broker's process: its connections stay open without responses."""
        self._nodes[node_id].pause()

    def resume(self, node_id: int) -> None:
        """Continue one broker's process after `pause`."""
        self._nodes[node_id].resume()

    def fill_disk(self, node_id: int) -> None:
        """Let one broker's writes fail, as on a full disk: it then ends by itself.

        On Linux only. `start_broker` starts it with free space.
        """
        self._nodes[node_id].fill_disk()

    def log_directory(self, node_id: int) -> Path:
        """Return the directory of a broker's partitions."""
        return self._nodes[node_id].data

    def log_tail(self, node_id: int, lines: int = 40) -> str:
        """Return the last lines of a broker's log."""
        return self._nodes[node_id].log_tail(lines)

    def java_command(self, main_class: str, *args: str) -> list[str]:
        """Return the command for one of Kafka's tools, with the brokers' jars."""
        return [*self._java(*TOOL_LOG), main_class, *args]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _listener_ports(self, listeners: Mapping[str, str]) -> Listeners:
        taken = [*self._ports.values(), *self._controllers.values()]
        ports = iter(free_ports(len(self._ports) * len(listeners), beside=taken))
        return {
            listener: {node_id: next(ports) for node_id in self._ports}
            for listener in listeners.items()
        }

    @cached_property
    def _java_program(self) -> Path:
        return find_java()

    def _java(self, *options: str) -> list[str]:
        java, jars = self._java_program, fetch_jars(self.version)
        classpath = os.pathsep.join(map(str, (jars / "*", *self._classpath)))
        return [str(java), *options, "-cp", classpath]

    def _broker_command(self, node: Node) -> list[str]:
        java = self._java(*self._java_options, *BROKER_LOG)
        return [*java, "kafka.Kafka", str(node.properties)]

    def _prepare(self) -> None:
        if self._nodes:
            raise LaunchError("this cluster is already started")
        jars = fetch_jars(self.version)
        log.info("starting Apache Kafka %s from %s", self.version, jars)
        self._cleanup = CleanupProcess()
        home = self._directory or self._new_temporary(self._cleanup)
        for node_id in self._ports:
            node = Node(node_id, home / f"broker-{node_id}", self._cleanup)
            self._nodes[node_id] = node
            self._configure(node)

    def _new_temporary(self, guard: CleanupProcess) -> Path:
        self._temporary = Path(tempfile.mkdtemp(prefix="sharecons-kafka-"))
        guard.remove(self._temporary)
        return self._temporary

    def _configure(self, node: Node) -> None:
        node.properties.parent.mkdir(parents=True, exist_ok=True)
        settings = {
            **defaults(len(self._ports)),
            **node_settings(
                node.node_id,
                self._ports,
                self._controllers,
                self._listeners,
                self._advertised,
            ),
            "log.dirs": str(node.data),
            **self._config,
        }
        node.properties.write_text(format_properties(settings))
        format_storage(
            node.data, self.version, self.java_command, node.node_id, self._cluster_id
        )


def _client_ports(brokers: int, first: int | None) -> list[int]:
    if first is None:
        return free_ports(brokers)
    ports = list(range(first, first + brokers))
    for port in ports:
        if not is_free(port):
            raise LaunchError(f"port {port} is in use: choose another")
    return ports
