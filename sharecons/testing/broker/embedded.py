"""`EmbeddedBroker`: Kafka brokers in this process.

In an async test it runs beside the test, on the same event loop:

    async with EmbeddedBroker(topics={"orders": 4}) as kafka:
        consumer = ShareConsumer(
            "orders", group_id="g", bootstrap_servers=kafka.bootstrap_servers
        )

In a synchronous test, or for blocking clients, in its own thread:

    with EmbeddedBroker(brokers=3) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

All methods but `wait_until_settled` are synchronous, can be called from any thread, and
have taken effect when they return.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Self

from anyio.abc import TaskGroup

from sharecons.testing import virtual_time
from sharecons.testing.broker import wait_settled
from sharecons.testing.broker.addresses import brokers_at, format_address
from sharecons.testing.broker.batch_writer import Header
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.control import Control
from sharecons.testing.broker.exchange import LoggedRequest, RequestLog
from sharecons.testing.broker.faults import Faults
from sharecons.testing.broker.inspection import Inspection
from sharecons.testing.broker.memory import MemoryStream, Network, memory_pipe
from sharecons.testing.broker.node import Node
from sharecons.testing.broker.runner import NOT_RUNNING, BrokerRunner
from sharecons.testing.broker.settings.validation import broker_settings
from sharecons.testing.broker.snapshots import GroupSnapshot, RecordSnapshot
from sharecons.testing.broker.telemetry_control import TelemetryControl
from sharecons.testing.broker.topic_arguments import check_topics
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["EmbeddedBroker"]

FIRST_PORT: Final = 9092


class EmbeddedBroker:
    """A cluster of brokers, which run from entering the `with` block until leaving it.

    Args:
        brokers: the number of brokers; their node ids start at 1.
        host: the address to bind.
        port: the first broker's port; the others follow. 0 chooses free ports.
        advertise: the address by which clients reach the first broker, `HOST:PORT` or
            `HOST`; the others have the ports that follow. By default it is `host` and
            `port`. With a wildcard host (0.0.0.0 or ::) each client gets the address
            by which it has connected, and `bootstrap_servers` has the loopback address.
        topics: topics to create, and their partitions.
        settings: brokers' settings by Kafka's names; others have Kafka's defaults.
        listen: whether to open ports. Without ports, clients connect by `connect` or
            `network`, which also work on a virtual clock.
        coordinator_move_time: seconds that a group has no coordinator after a broker
            has stopped, and seconds that the next coordinator takes to load it.

    Raises:
        SettingError: a broker setting is unknown, or its value is invalid.
        TypeError, ValueError: another argument is invalid.
        OSError: when entered: a port is in use.
        RequestError: when entered: a topic cannot be created.
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, object] | None = None,
        listen: bool = True,
        advertise: str | None = None,
        coordinator_move_time: float = 0.0,
    ) -> None:
        first = port or (0 if listen else FIRST_PORT)
        self.cluster = Cluster(
            brokers_at(brokers, host, first, advertise),
            broker_settings(settings or {}),
        )
        self.cluster.coordinators.set_move_time(coordinator_move_time)
        self._runner = BrokerRunner(self._start, self._close)
        self._call = self._runner.call
        self.faults = Faults(self._call)
        """Fault injection: `faults.on("ShareFetch").cut()`."""
        self.telemetry = TelemetryControl(self.cluster.telemetry, self._call)
        self._topics = check_topics(topics)
        self._listen = listen
        self._request_log = RequestLog()
        self._control = Control(self.cluster)
        self._inspection = Inspection(self.cluster)
        self._nodes = {
            node_id: Node(broker, self.cluster, self.faults, self._request_log)
            for node_id, broker in self.cluster.brokers.items()
        }
        self._tasks: TaskGroup

    # Addresses, requests, leaders.

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for a client's configuration."""
        return ",".join(self.brokers.values())

    @property
    def brokers(self) -> Mapping[int, str]:
        """The address of every broker, by node id; RuntimeError before the start."""
        if any(broker.port == 0 for broker in self.cluster.brokers.values()):
            raise RuntimeError(NOT_RUNNING)
        return {
            node_id: format_address(broker.host, broker.port)
            for node_id, broker in self.cluster.brokers.items()
        }

    @property
    def running(self) -> frozenset[int]:
        """The node ids of the brokers that run."""
        return frozenset(self.cluster.running)

    @property
    def requests(self) -> list[LoggedRequest]:
        """The requests that the brokers have received so far, in order."""
        return self._request_log.all()

    def forget_requests(self) -> None:
        """Clear `requests`."""
        self._request_log.clear()

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the node id of a partition's leader; -1 if there is none."""
        return self._call(partial(self._control.leader, topic, partition))

    def coordinator(self, group_id: str) -> int:
        """Return the node id of a group's coordinator; -1 if there is none."""
        return self._call(partial(self._control.coordinator, group_id))

    # Topics and records.

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic. By default, every broker has a replica.

        Raises:
            SettingError: a topic setting is unknown, or its value is invalid.
            RequestError: Kafka would not create the topic.
        """
        create = self._control.create_topic
        self._call(partial(create, name, partitions, replication, config or {}))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its state in all groups."""
        self._call(partial(self._control.delete_topic, name))

    def produce(
        self,
        topic: str,
        values: Iterable[bytes | str | None],
        *,
        partition: int | None = None,
        keys: Sequence[bytes | str | None] | None = None,
        headers: Sequence[Header] = (),
        batch: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Write records as a producer with acks=all and all permissions.

        The settings of the topic hold as for any producer: `max.message.bytes`,
        `message.timestamp.type`, `message.timestamp.before.max.ms` and `.after.max.ms`,
        `cleanup.policy=compact` (each record needs a key) and `min.insync.replicas`.

        Args:
            partition: the partition to write to. By default the key decides, and
                records without a key go to all partitions in turn.
            keys: one for each value.
            headers: the headers of every record.
            batch: the maximum number of records in a batch. No batch is larger than
                `max.message.bytes`.
            timestamp: the timestamp of every record, in milliseconds since the epoch;
                by default now. With `message.timestamp.type=LogAppendTime` always now.

        Raises:
            LookupError: there is no such topic or partition.
            TypeError, ValueError: an argument is invalid.
            RequestError: the settings of the topic do not allow one of the records, or
                the partition has no leader; nothing is written.
        """
        self._call(
            partial(
                self._control.produce,
                topic,
                values,
                partition=partition,
                keys=keys,
                headers=headers,
                batch=batch,
                timestamp=milliseconds() if timestamp is None else timestamp,
                now=milliseconds(),
            )
        )

    def records(
        self, topic: str, partition: int | None = None
    ) -> tuple[RecordSnapshot, ...]:
        """Return the records of a topic, or of one partition, by partition and offset.

        Deleted records are left out; records of aborted transactions are included.

        Raises:
            LookupError: there is no such topic or partition.
            ValueError: a batch is damaged.
        """
        return self._call(partial(self._inspection.records, topic, partition))

    def load_log(self, topic: str, partition: int, data: bytes) -> None:
        """Append bytes of a log segment with their offsets, even of formats 0 and 1."""
        self._call(partial(self._control.load_log, topic, partition, data))

    def corrupt_batch(self, topic: str, partition: int, offset: int) -> None:
        """Damage the batch that contains an offset, so that its checksum is wrong."""
        self._call(partial(self._control.corrupt_batch, topic, partition, offset))

    # Brokers, leaders, coordinators.

    def stop_broker(self, node_id: int) -> None:
        """Stop a broker as if it were killed; other brokers become leaders."""
        self._call(self._node(node_id).stop)

    def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped, at the same port.

        Raises:
            OSError: the port is in use.
        """
        node = self._node(node_id)
        self._call(lambda: node.start(self._tasks, listen=self._listen))

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make a broker the leader of a partition; acquisition locks are lost."""
        self._call(partial(self._control.move_leader, topic, partition, to))

    def move_coordinator(self, group_id: str, to: int) -> None:
        """Make a broker the coordinator of a group."""
        self._call(partial(self._control.move_coordinator, group_id, to))

    # Share groups.

    def set_group_config(self, group_id: str, config: Mapping[str, object]) -> None:
        """Set a group's own settings, such as share.record.lock.duration.ms.

        Raises:
            SettingError: a group setting is unknown, or its value is invalid; none
                is set.
        """
        self._call(partial(self._control.set_group_config, group_id, config))

    def group(self, group_id: str) -> GroupSnapshot:
        """Return a share group's members, and its state of each offset in flight.

        Raises:
            LookupError: there is no such share group.
        """
        return self._call(partial(self._inspection.group, group_id))

    async def wait_until_settled(
        self, group_id: str, topic: str | None = None, timeout: float = 10.0
    ) -> None:
        """Wait until a share group has settled all records, or all of one topic.

        A record is settled once it is acknowledged or archived.

        Args:
            timeout: in seconds.

        Raises:
            TimeoutError: not all records are settled; the message says which.
            LookupError: the topic does not exist, or the group is not a share group.
        """
        unsettled = partial(self._inspection.unsettled, group_id, topic)
        await wait_settled.wait(group_id, partial(self._call, unsettled), timeout)

    def wait_until_settled_sync(
        self, group_id: str, topic: str | None = None, timeout: float = 10.0
    ) -> None:
        """Block as `wait_until_settled` waits, in a thread without an event loop.

        Raises:
            RuntimeError: an event loop runs in this thread.
        """
        unsettled = partial(self._inspection.unsettled, group_id, topic)
        wait_settled.wait_sync(group_id, partial(self._call, unsettled), timeout)

    def expire_locks(
        self, group_id: str, topic: str | None = None, partition: int | None = None
    ) -> None:
        """Expire the locks of a group, or of a part of it; raises as `group`."""
        self._call(partial(self._control.expire_locks, group_id, topic, partition))

    def forget_session(self, group_id: str, member_id: str) -> None:
        """End a member's share sessions on every broker; raises as `group`."""
        self._call(partial(self._control.close_sessions, group_id, member_id))

    def forget_member(self, group_id: str, member_id: str) -> None:
        """Remove a member from its group, as its session timeout does."""
        self._call(partial(self._control.remove_member, group_id, member_id))

    # Connections without sockets.

    def connect(self, where: int) -> MemoryStream:
        """Connect to a broker over memory, by its port or its node id.

        Call it on the event loop that the brokers run on.

        Raises:
            ConnectionRefusedError: the broker does not exist or is stopped.
        """
        if not isinstance(where, int):
            raise TypeError("pass `network=broker.network`, not `network=broker`")
        for node in self._nodes.values():
            broker = node.broker
            if where in (broker.port, broker.node_id) and broker.running:
                client, peer = memory_pipe()
                self._tasks.start_soon(node.serve, peer)
                return client
        raise ConnectionRefusedError(111, "Connection refused")

    @property
    def network(self) -> Network:
        """For `ShareConsumer(network=…)`: connects over memory."""
        return Network(self.connect)

    # Start and stop.

    async def start(self) -> None:
        """Start on this event loop, as `async with` does; any task can call `stop`.

        Raises:
            OSError: a port is in use.
            RequestError: Kafka would not create one of the topics.
            RuntimeError: it is running already, or the event loop has a virtual clock
                and `listen` is not False.
        """
        if self._listen:
            virtual_time.check_real_time("EmbeddedBroker with ports")
        await self._runner.start()

    async def stop(self) -> None:
        """Stop all brokers, which keep topics, records and ports for another start.

        Raises the exception that a function of the test has raised in a fault.
        """
        await self._runner.stop()
        self.faults.raise_error()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        virtual_time.check_real_time("`with EmbeddedBroker()`, which starts a thread,")
        self._runner.start_thread(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.stop_thread()

    def _start(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        for node in self._nodes.values():
            node.start(tasks, listen=self._listen)
        for name, partitions in list(self._topics.items()):
            self.create_topic(name, partitions)
            del self._topics[name]  # it still exists after a stop and another start

    def _close(self) -> None:
        for node in self._nodes.values():
            node.stop()

    def _node(self, node_id: int) -> Node:
        try:
            return self._nodes[node_id]
        except KeyError:
            raise LookupError(f"broker {node_id} does not exist") from None
