"""Invalid input and failures, on both brokers."""

import socket

import anyio
import pytest
from confluent_kafka import Consumer

from sharecons import ShareConsumer
from sharecons.errors import (
    AuthorizationError,
    ConnectionFailedError,
    CorruptRecordsError,
    GroupError,
    NotSubscribedError,
)
from sharecons.net.io.transport import FrameTransport, TcpNetwork
from sharecons.protocol.partitions import Endpoint
from sharecons.testing import EmbeddedBroker
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.damage import corrupt_batch
from tests.scenarios.queue import Queue
from tests.waiting import until

pytestmark = pytest.mark.anyio


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def test_unreachable_brokers_raise_after_connect_timeout() -> None:
    ports = free_port(), free_port()
    servers = [f"127.0.0.1:{port}" for port in ports]
    consumer: ShareConsumer = ShareConsumer(
        "t", group_id="g", bootstrap_servers=servers, connect_timeout=1
    )
    began = anyio.current_time()
    with pytest.raises(ConnectionFailedError) as caught:
        async with consumer:
            pass

    assert all(server in str(caught.value) for server in servers)
    assert str(caught.value).count("Connection refused") == 2
    assert "no broker responded; tried for 1." in str(caught.value)
    assert 1 <= anyio.current_time() - began < 3


class CountingNetwork(TcpNetwork):
    """A TCP network that counts the attempts to connect."""

    attempts = 0

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        self.attempts += 1
        return await super().connect(endpoint)


async def test_consumer_waits_for_broker_that_starts_later() -> None:
    port = free_port()
    network = CountingNetwork()
    consumer: ShareConsumer = ShareConsumer(
        "t", group_id="g", bootstrap_servers=f"127.0.0.1:{port}", network=network
    )

    async def enter() -> None:
        async with consumer:
            entered.set()

    entered = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(enter)
        await until(lambda: network.attempts > 1)
        assert not entered.is_set()
        async with EmbeddedBroker(port=port):
            with anyio.fail_after(5):
                await entered.wait()


async def test_unknown_host_is_named_after_connect_timeout() -> None:
    consumer: ShareConsumer = ShareConsumer(
        "t",
        group_id="g",
        bootstrap_servers="no-such-host.invalid:9092",
        connect_timeout=0.5,
    )
    reason = r"tried for 0\.\d s: .*no-such-host\.invalid:9092: cannot resolve the host"
    with pytest.raises(ConnectionFailedError, match=reason):
        async with consumer:
            pass


async def test_group_id_of_consumer_group_raises(admin: Admin) -> None:
    topic = admin.create_topic(partitions=1)
    group = f"classic-{topic}"
    classic = Consumer(
        {
            "bootstrap.servers": admin.bootstrap_servers,
            "group.id": group,
        }
    )
    classic.subscribe([topic])
    try:
        with anyio.fail_after(20):
            while not classic.assignment():
                await anyio.to_thread.run_sync(classic.poll, 0.1)
            consumer: ShareConsumer = ShareConsumer(
                topic, group_id=group, bootstrap_servers=admin.bootstrap_servers
            )
            async with consumer:
                for _ in range(2):
                    with pytest.raises(GroupError, match="another group_id"):
                        await anext(aiter(consumer))
    finally:
        classic.close()


async def test_forbidden_topic_raises(admin: Admin) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    admin.deny_topic(queue.topic)
    async with queue.consumer() as consumer:
        with pytest.raises(AuthorizationError, match=queue.topic):
            with anyio.fail_after(20):
                await anext(aiter(consumer))


async def test_poll_without_subscription_raises(admin: Admin) -> None:
    consumer: ShareConsumer = ShareConsumer(
        group_id="g-none", bootstrap_servers=admin.bootstrap_servers
    )
    async with consumer:
        with pytest.raises(NotSubscribedError, match="subscribe"):
            await consumer.poll(timeout=1)


async def test_corrupt_batch_raises_and_consumption_continues(
    admin: Admin, kafka: Kafka
) -> None:
    queue = Queue(admin)
    for value in (b"good-1", b"bad-bad-bad", b"good-2"):
        queue.produce([value])
    corrupt_batch(kafka, queue.topic, 1, b"bad-bad-bad", b"bad-bXd-bad")
    values, errors = [], []
    async with queue.consumer() as consumer:
        with anyio.fail_after(20):
            while len(values) < 2 or not errors:
                try:
                    async for record in consumer:
                        values.append(record.value)
                        if len(values) == 2 and errors:
                            break
                except CorruptRecordsError as error:
                    errors.append(error)

    assert sorted(values) == [b"good-1", b"good-2"]
    assert {(e.topic, e.partition, e.first_offset, e.last_offset) for e in errors} == {
        (queue.topic, 0, 1, 1)
    }
