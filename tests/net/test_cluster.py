"""Connecting to one of several brokers, and reconnecting."""

import anyio
import pytest

from sharecons.errors import ConnectionFailedError, UnsupportedVersionError
from sharecons.net.cluster import Cluster
from sharecons.protocol.partitions import Endpoint
from tests.net.interrupts import interruptions
from tests.net.streams import (
    MemoryNetwork,
    closing,
    http,
    responding,
)

pytestmark = pytest.mark.anyio


async def silent(peer):
    await peer.closed_by_client()


def cluster_of(network, *hosts):
    endpoints = [Endpoint(host, 9092) for host in hosts]
    return Cluster(
        endpoints, network, client_id="me", software_version="1", choose=lambda _: 0
    )


# Several addresses.


async def test_first_broker_that_responds_is_used():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": closing, "c": responding, "d": responding})

        connection = await cluster_of(network, "a", "b", "c", "d").connect_any()

        assert "c:9092" == connection.broker
        assert ["a", "b", "c"] == [endpoint.host for endpoint in network.connects]
        assert 1 == network.open
        await connection.aclose()


async def test_known_brokers_are_tried_before_bootstrap_and_none_twice():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {})
        known = [Endpoint("b", 9092), Endpoint("x", 9092)]

        with pytest.raises(ConnectionFailedError):
            await cluster_of(network, "a", "b").connect_any(known)
        assert ["b", "x", "a"] == [endpoint.host for endpoint in network.connects]


async def test_error_names_each_address_and_its_reason():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": closing, "c": http, "d": silent})

        with pytest.raises(ConnectionFailedError) as caught:
            await cluster_of(network, "a", "b", "c", "d").connect_any(timeout=8)

        message = str(caught.value)
        assert "no broker responded; tried for 8.0 s: " in message
        parts = message.split(" s: ")[1].split("; ")
        expected = [
            ("a:9092", "Connection refused"),
            ("b:9092", "closed the connection"),
            ("c:9092", "not a Kafka listener"),
            ("d:9092", "no response in time"),
        ]
        assert len(expected) == len(parts)
        for part, (address, reason) in zip(parts, expected, strict=True):
            assert address in part
            assert reason in part
        assert 0 == network.open


@pytest.mark.parametrize("hosts", ["s", "st", "sa", "as", "stuvw"])
async def test_silent_brokers_take_no_longer_than_the_timeout(hosts):
    serve = {"a": responding, **dict.fromkeys("stuvw", silent)}
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, serve)
        started = anyio.current_time()

        try:
            connection = await cluster_of(network, *hosts).connect_any(timeout=5)
        except ConnectionFailedError:
            assert "a" not in hosts
        else:
            assert "a:9092" == connection.broker
            await connection.aclose()

        assert anyio.current_time() - started < 5.001
        assert 0 == network.open


def slow(seconds):
    async def serve(peer):
        await anyio.sleep(seconds)
        await responding(peer)

    return serve


async def test_a_slow_broker_beside_refusing_ones_has_the_whole_time():
    hosts = "abcdefghij"
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"j": slow(6)})
        started = anyio.current_time()

        connection = await cluster_of(network, *hosts).connect_any(timeout=10)

        assert "j:9092" == connection.broker
        assert 6 == pytest.approx(anyio.current_time() - started, abs=0.01)
        await connection.aclose()


@pytest.mark.parametrize("retry", [False, True])
async def test_one_of_two_hundred_slow_brokers_is_reached(retry):
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, slow(1.2))
        known = [Endpoint(f"b{number}", 9092) for number in range(200)]
        started = anyio.current_time()

        connection = await cluster_of(network, "a").connect_any(known, retry=retry)

        assert 1.2 == pytest.approx(anyio.current_time() - started, abs=0.01)
        assert 1 == network.open, "connections that opened too late are closed"
        await connection.aclose()


async def test_silent_brokers_delay_the_next_attempt_by_a_second_each():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"c": responding, "a": silent, "b": silent})
        started = anyio.current_time()

        connection = await cluster_of(network, "a", "b", "c").connect_any(timeout=10)

        assert 2 == pytest.approx(anyio.current_time() - started, abs=0.01)
        assert 1 == network.open
        await connection.aclose()


async def test_a_broker_that_starts_later_is_reached_by_retries(caplog):
    serve = {}
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, serve)
        started = anyio.current_time()

        async def start():
            await anyio.sleep(2)
            serve["b"] = responding

        tasks.start_soon(start)
        with caplog.at_level("WARNING", "sharecons"):
            connection = await cluster_of(network, "a", "b").connect_any(retry=True)

        assert "b:9092" == connection.broker
        assert 2 <= anyio.current_time() - started <= 3
        assert 16 > len(network.connects), "no tight loop"
        (warning,) = caplog.records
        assert "no broker reached yet, retrying" in warning.getMessage()
        assert "a:9092: Connection refused" in warning.getMessage()
        await connection.aclose()


async def test_retries_end_with_the_timeout_and_name_the_time_and_each_reason():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": silent})

        with pytest.raises(ConnectionFailedError) as caught:
            await cluster_of(network, "a", "b").connect_any(timeout=3, retry=True)

    assert str(caught.value) == (
        "no broker responded; tried for 3.0 s: "
        "connecting to a:9092: Connection refused; "
        "connecting to b:9092: no response in time"
    )


async def test_a_refusing_address_beside_a_silent_one_is_logged_early(caplog):
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": silent})
        with caplog.at_level("WARNING", "sharecons"):
            with anyio.move_on_after(1.5):
                await cluster_of(network, "a", "b").connect_any(retry=True)

    (warning,) = caplog.records
    assert "a:9092: Connection refused" in warning.getMessage()


async def test_a_broker_that_hangs_once_is_tried_again_after_ten_seconds():
    attempts = []

    async def hang_once(peer):
        attempts.append(anyio.current_time())
        await (silent if len(attempts) == 1 else responding)(peer)

    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, hang_once)
        cluster = cluster_of(network, "a")

        connection = await cluster.connect_any(timeout=60, retry=True)

        first, second = attempts
        assert 10 == pytest.approx(second - first, abs=0.1)
        await connection.aclose()


async def test_a_broker_that_rejects_the_version_ends_the_retries_immediately():
    class OldCluster(Cluster):
        async def connect(self, endpoint, timeout=10.0):
            if endpoint.host == "b":
                raise UnsupportedVersionError("b:9092 is too old")
            return await super().connect(endpoint, timeout)

    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"a": silent})
        endpoints = [Endpoint("a", 9092), Endpoint("b", 9092)]
        cluster = OldCluster(
            endpoints, network, client_id="me", software_version="1", choose=lambda _: 0
        )
        started = anyio.current_time()

        with pytest.raises(UnsupportedVersionError, match="too old"):
            await cluster.connect_any(retry=True)

        assert 1 == pytest.approx(anyio.current_time() - started, abs=0.01)
        assert 0 == network.open


async def test_clients_begin_at_chosen_addresses():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {})
        endpoints = [Endpoint(host, 9092) for host in "abc"]
        cluster = Cluster(
            endpoints,
            network,
            client_id="me",
            software_version="1",
            choose=lambda count: count - 1,
        )

        with pytest.raises(ConnectionFailedError):
            await cluster.connect_any([Endpoint("x", 9092), Endpoint("y", 9092)])

        assert [*"yxcab"] == [endpoint.host for endpoint in network.connects]


async def test_other_errors_of_a_network_are_raised_unchanged():
    class Broken:
        async def connect(self, endpoint):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await cluster_of(Broken(), "a", "b").connect_any(retry=True)


@pytest.mark.parametrize("retry", [False, True])
async def test_cancelled_at_each_await_while_looking_for_a_broker(retry):
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": http, "c": responding})

        async def attempt(interrupted):
            cluster = cluster_of(network, "a", "b", "c")
            connection = await interrupted(cluster.connect_any(retry=retry))
            if connection is not None:
                await connection.aclose()
            assert 0 == network.open

        steps = [step async for step in interruptions(attempt)]

    assert len(steps) >= 4  # one for each address, and the end


@pytest.mark.parametrize("retry", [False, True])
async def test_cancelled_at_each_moment_of_its_attempts(retry):
    ended = 0
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": http, "c": responding, "d": responding})
        for moment in range(60):
            async with anyio.create_task_group() as attempts:

                async def attempt():
                    nonlocal ended
                    cluster = cluster_of(network, "a", "b", "c", "d")
                    connection = await cluster.connect_any(retry=retry)
                    ended += 1
                    await connection.aclose()

                attempts.start_soon(attempt)
                for _ in range(moment):
                    await anyio.lowlevel.checkpoint()
                attempts.cancel_scope.cancel()
            assert 0 == network.open

    assert 0 < ended < 60
