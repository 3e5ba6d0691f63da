"""Running clients of two brokers, one of which comes back with another certificate."""

import re
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import pytest

from sharecons import Producer, ShareWorker
from sharecons.admin import ShareGroupAdmin
from sharecons.errors import AuthenticationError
from sharecons.protocol.grace_period import DURATION
from tests.net.embedded import GROUP, SlowNetwork, consuming, read_records, running
from tests.waiting import until

pytestmark = pytest.mark.anyio

OUTAGE = 8.0
"""Seconds; longer than a heartbeat interval."""
ADVICE = {
    "expired": "certificate has expired; renew the certificate of this broker",
    "foreign": "local issuer certificate; check the certificate of this broker",
    "demanding": "rejected the client's certificate .*; check cert_file .* has expired",
}
"""How a broker is wrong, and the end of the error."""


@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock


@pytest.fixture(scope="module")
def listeners(authority, stranger, tmp_path_factory):
    """TLS contexts of brokers: a good one, and a wrong one for each key of ADVICE."""
    directory = tmp_path_factory.mktemp("listeners")
    expired = authority.ca.issue_cert(
        "127.0.0.1", not_after=datetime.now(UTC) - timedelta(days=1)
    )
    expired.private_key_and_cert_chain_pem.write_to_path(directory / "expired.pem")
    good = authority.issue("127.0.0.1", stem="good")
    foreign = stranger.issue("127.0.0.1", stem="foreign")
    contexts = {}
    for name, file in [
        ("good", good),
        ("expired", directory / "expired.pem"),
        ("foreign", foreign),
        ("demanding", good),
    ]:
        contexts[name] = context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
    contexts["demanding"].verify_mode = ssl.CERT_REQUIRED
    return contexts


class TlsNetwork(SlowNetwork):
    """Connects over memory, after a TLS handshake with the broker's context.

    Attributes:
        listeners: the name of each broker's context, by its address.
    """

    def __init__(self, broker, contexts, ca_file):
        super().__init__(broker)
        self.listeners = {}
        self._contexts = contexts
        self._client = ssl.create_default_context(cafile=ca_file)

    async def connect(self, endpoint):
        transport = await super().connect(endpoint)
        name = self.listeners.get(str(endpoint), "good")
        try:
            shake_hands(self._client, self._contexts[name], endpoint.host)
        except ssl.SSLError:
            await transport.aclose()
            raise
        return transport


def shake_hands(client, server, host):
    """Make a TLS handshake; raise the client's error."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(to_client, to_server, server_hostname=host)
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    # The broker's alert about a client's certificate follows the client's handshake.
    for step in (client_side.do_handshake, server_side.do_handshake) * 2 + (
        client_side.read,
    ):
        try:
            step()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            if step != server_side.do_handshake:
                raise


@pytest.fixture
async def cluster(listeners, authority):
    """Two brokers, each the leader of a partition, and their network."""
    async with running(brokers=2, partitions=2) as broker:
        yield broker, TlsNetwork(broker, listeners, authority.ca_file)


@asynccontextmanager
async def restarted(cluster, node, listener):
    """Restart a broker; until the end of the block it has another certificate."""
    broker, network = cluster
    network.listeners[broker.brokers[node]] = listener
    broker.stop_broker(node)
    broker.start_broker(node)
    restore_leaders(broker)
    yield
    del network.listeners[broker.brokers[node]]


def restore_leaders(broker):
    for partition in range(2):
        broker.move_leader("orders", partition, to=1 + partition)
    broker.move_coordinator(GROUP, to=1)


def produce_to_both(broker, value):
    for partition in range(2):
        broker.produce("orders", [value], partition=partition)


async def read(consumer, into):
    """Read until an error; "before" can be delivered again, as its locks are lost."""
    async for record in consumer:
        into.add((record.value, record.partition))


@pytest.mark.parametrize("node", [1, 2])
@pytest.mark.parametrize("listener", ADVICE)
async def test_wrong_certificate_for_seconds_does_not_end_a_consumer(
    cluster, node, listener
):
    broker, network = cluster
    got = set()
    async with (
        consuming(broker, network=network) as consumer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(read, consumer, got)
        produce_to_both(broker, b"before")
        await until(lambda: len(got) == 2)
        async with restarted(cluster, node, listener):
            produce_to_both(broker, b"during")
            reason = f"{broker.brokers[node]}: .*{ADVICE[listener]}"
            await until(lambda: re.search(reason, "".join(consumer.problems)))
            await anyio.sleep(OUTAGE)
            assert (b"during", 2 - node) in got
            assert (b"during", node - 1) not in got
        await until(lambda: len(got) == 4)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("node", [1, 2])
@pytest.mark.parametrize("listener", ADVICE)
async def test_lasting_wrong_certificate_ends_a_consumer_and_is_named(
    cluster, node, listener
):
    broker, network = cluster
    async with consuming(broker, network=network) as consumer:
        produce_to_both(broker, b"before")
        await read_records(consumer, 2)
        async with restarted(cluster, node, listener):
            started = anyio.current_time()
            with pytest.raises(AuthenticationError, match=ADVICE[listener]) as caught:
                await read(consumer, set())
            assert DURATION < anyio.current_time() - started < DURATION + 2
            assert f" {broker.brokers[node]}: " in str(caught.value)


@pytest.mark.parametrize("listener", ADVICE)
async def test_wrong_certificate_at_start_is_an_error_immediately(cluster, listener):
    broker, network = cluster
    started = anyio.current_time()
    async with restarted(cluster, 1, listener):
        with pytest.raises(AuthenticationError, match=ADVICE[listener]):
            async with consuming(broker, network=network):
                pass
    assert anyio.current_time() - started < 1


async def test_wrong_certificate_for_seconds_does_not_end_a_worker(cluster):
    broker, network = cluster
    handled = []

    async def handle(record):
        handled.append((record.value, record.partition))

    async with ShareWorker(
        "orders",
        handle,
        group_id=GROUP,
        bootstrap_servers=broker.brokers[1],
        network=network,
        handle_signals=False,
    ):
        produce_to_both(broker, b"before")
        await until(lambda: len(handled) == 2)
        async with restarted(cluster, 2, "expired"):
            produce_to_both(broker, b"during")
            await anyio.sleep(OUTAGE)
            assert 3 == len(handled)
        await until(lambda: (b"during", 1) in handled)


@asynccontextmanager
async def producing(cluster):
    broker, network = cluster
    async with Producer(
        bootstrap_servers=broker.brokers[1], network=network
    ) as producer:
        for partition in range(2):
            await producer.send("orders", b"before", partition=partition)
        yield producer


async def test_wrong_certificate_for_seconds_delays_a_producer(cluster):
    broker, _ = cluster
    async with producing(cluster) as producer, anyio.create_task_group() as tasks:
        async with restarted(cluster, 2, "expired"):
            tasks.start_soon(partial(producer.send, "orders", b"during", partition=1))
            await producer.send("orders", b"during", partition=0)
            await anyio.sleep(OUTAGE)
            assert 1 == len(broker.records("orders", 1))
    assert 2 == len(broker.records("orders", 1))


async def test_lasting_wrong_certificate_fails_the_records_of_a_producer(cluster):
    async with producing(cluster) as producer, restarted(cluster, 2, "expired"):
        with pytest.raises(AuthenticationError, match=ADVICE["expired"]):
            await producer.send("orders", b"during", partition=1)


@asynccontextmanager
async def administering(cluster):
    broker, network = cluster
    async with ShareGroupAdmin(
        bootstrap_servers=broker.brokers[1], network=network
    ) as admin:
        await admin.describe_features(node_id=2)
        yield admin


async def test_wrong_certificate_for_seconds_delays_an_admin_client(cluster):
    async with administering(cluster) as admin, anyio.create_task_group() as tasks:
        async with restarted(cluster, 2, "expired"):
            tasks.start_soon(partial(admin.describe_features, node_id=2))
            await anyio.sleep(OUTAGE)


async def test_lasting_wrong_certificate_is_the_error_of_an_admin_client(cluster):
    async with administering(cluster) as admin, restarted(cluster, 2, "expired"):
        with pytest.raises(AuthenticationError, match=ADVICE["expired"]):
            await admin.describe_features(node_id=2)
