"""The addresses that embedded brokers bind and advertise."""

import multiprocessing
import os
import socket

import pytest
from confluent_kafka.admin import AdminClient

from sharecons import ShareConsumer
from sharecons.cli import main
from sharecons.testing import EmbeddedBroker
from sharecons.testing.broker.addresses import parse_address
from tests.broker.messages import METADATA, encode_request


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


IPV6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def listens(host, port):
    try:
        socket.create_connection((host, port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def advertised(bootstrap):
    """Return the addresses that librdkafka gets, by node id."""
    brokers = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10)
    return {node: (each.host, each.port) for node, each in brokers.brokers.items()}


def free_port():
    with EmbeddedBroker() as broker:
        return broker.cluster.brokers[1].port


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("kafka", ("kafka", 0)),
        ("kafka:9092", ("kafka", 9092)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("[::1]:9092", ("::1", 9092)),
        ("[::1]", ("::1", 0)),
        ("fe80::1", ("fe80::1", 0)),
    ],
)
def test_valid_address_is_parsed(text, address):
    assert address == parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":9092",
        "kafka:",
        "kafka:x",
        "kafka:0",
        "kafka:65536",
        "[::1",
        "[]:1",
        "tcp://kafka:9092",
        "one:9092,two:9092",
    ],
)
def test_invalid_address_raises(text):
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        EmbeddedBroker(advertise=text)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "*"])
def test_wildcard_host_advertises_address_of_the_connection(host):
    with EmbeddedBroker(brokers=2, host=host) as kafka:
        ports = [broker.port for broker in kafka.cluster.brokers.values()]
        assert f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}" == kafka.bootstrap_servers
        for client in ("127.0.0.1", "127.0.0.2"):
            found = advertised(f"{client}:{ports[0]}")
            assert {1: (client, ports[0]), 2: (client, ports[1])} == found


@IPV6
@pytest.mark.parametrize("host", ["::", "[::]", "0:0:0:0:0:0:0:0"])
def test_ipv6_wildcard_host_advertises_ipv6_address(host):
    with EmbeddedBroker(host=host) as kafka:
        port = kafka.cluster.brokers[1].port
        assert f"[::1]:{port}" == kafka.bootstrap_servers
        assert {1: ("::1", port)} == advertised(kafka.bootstrap_servers)


@IPV6
def test_ipv6_wildcard_host_accepts_ipv4_clients():
    with EmbeddedBroker(host="::") as kafka:
        port = kafka.cluster.brokers[1].port
        assert {1: ("127.0.0.1", port)} == advertised(f"127.0.0.1:{port}")
        assert {1: ("::1", port)} == advertised(kafka.bootstrap_servers)


@IPV6
def test_ipv6_host_that_is_no_wildcard_refuses_ipv4_clients():
    with EmbeddedBroker(host="::1") as kafka:
        assert not listens("127.0.0.1", kafka.cluster.brokers[1].port)


@IPV6
@pytest.mark.anyio
@pytest.mark.parametrize("host", ["::1", "[::1]", "::"])
async def test_consumer_reads_over_ipv6(host):
    async with EmbeddedBroker(host=host, topics={"orders": 1}) as kafka:
        kafka.set_group_config("g", {"share.assignment.interval.ms": 0})
        kafka.produce("orders", [b"x"])
        async with ShareConsumer(
            "orders",
            group_id="g",
            auto_offset_reset="earliest",
            bootstrap_servers=kafka.bootstrap_servers,
        ) as consumer:
            assert b"x" == (await anext(aiter(consumer))).value


def test_clients_get_advertised_address():
    port = free_port()
    with EmbeddedBroker(
        brokers=2, host="0.0.0.0", port=port, advertise=f"localhost:{port}"
    ) as kafka:
        assert f"localhost:{port},localhost:{port + 1}" == kafka.bootstrap_servers
        found = advertised(f"127.0.0.1:{port}")

    assert {1: ("localhost", port), 2: ("localhost", port + 1)} == found


def test_advertised_port_can_differ_from_bound_port():
    with EmbeddedBroker(advertise="kafka.example:19092") as kafka:
        _, port = kafka.cluster.brokers[1].bind_address
        assert "kafka.example:19092" == kafka.bootstrap_servers
        assert {1: ("kafka.example", 19092)} == advertised(f"127.0.0.1:{port}")
        kafka.stop_broker(1)
        assert not listens("127.0.0.1", port)
        kafka.start_broker(1)
        assert listens("127.0.0.1", port)


def test_advertised_host_without_port_uses_bound_port():
    with EmbeddedBroker(advertise="localhost") as kafka:
        (_, port) = kafka.cluster.brokers[1].bind_address
        assert f"localhost:{port}" == kafka.bootstrap_servers


@pytest.mark.parametrize("address", ["0.0.0.0", "0.0.0.0:9092", "[::]:9092"])
def test_wildcard_advertised_address_raises(address):
    with pytest.raises(ValueError, match="clients cannot connect to"):
        EmbeddedBroker(advertise=address)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"brokers": 0}, "brokers must be at least 1"),
        ({"port": 65536}, "port 65536 is not between 1 and 65535"),
        ({"port": -1}, "port -1 is not between 1 and 65535"),
        ({"port": 65535, "brokers": 2}, "port 65536 is not between"),
        ({"advertise": "kafka:65535", "brokers": 2}, "port 65536 is not between"),
    ],
)
def test_impossible_addresses_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        EmbeddedBroker(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--advertise", "0.0.0.0:9092"], "clients cannot connect to 0.0.0.0"),
        (["--advertise", "kafka:x"], "'kafka:x' is not HOST:PORT"),
        (["--port", "70000"], "port 70000 is not between 1 and 65535"),
        (["--brokers", "0"], "brokers must be at least 1"),
        (["--set", "num.partition=1"], "did you mean num.partitions"),
        (["--set", "num.partitions=x"], "Not a number of type INT"),
    ],
)
def test_command_with_invalid_address_exits_with_2(arguments, message, capsys):
    assert 2 == main(["broker", *arguments])
    (line,) = capsys.readouterr().err.splitlines()

    assert line.startswith("sharecons broker: ")
    assert message in line


def test_command_exits_with_1_if_it_cannot_listen(capsys):
    assert 1 == main(["broker", "--host", "no.such.host.invalid", "--port", "0"])
    (line,) = capsys.readouterr().err.splitlines()

    assert line.startswith("sharecons broker: no.such.host.invalid")


def wait_in_child(ready, end):
    ready.set()
    end.wait(30)


@pytest.mark.parametrize("is_stopped", [False, True], ids=["closed", "stopped"])
def test_forked_process_does_not_keep_ports_open(is_stopped):
    fork = multiprocessing.get_context("fork")
    ready, end = fork.Event(), fork.Event()
    child = fork.Process(target=wait_in_child, args=(ready, end))
    with EmbeddedBroker(brokers=2) as kafka:
        ports = [broker.port for broker in kafka.cluster.brokers.values()]
        client = socket.create_connection(("127.0.0.1", ports[0]))
        client.sendall(encode_request(METADATA))
        assert client.recv(1)
        child.start()
        try:
            assert ready.wait(10)
            assert all(listens("127.0.0.1", port) for port in ports)
            client.sendall(encode_request(METADATA))
            while len(client.recv(1 << 16)) == 1 << 16:
                pass
            if is_stopped:
                kafka.stop_broker(1)
                assert_closed(client, ports[0])
                kafka.start_broker(1)
                assert listens("127.0.0.1", ports[0])
            else:
                kafka.__exit__(None, None, None)
                assert_closed(client, ports[0])
            assert child.is_alive()
        finally:
            end.set()
            child.join(10)
            client.close()


def assert_closed(client, port):
    assert not listens("127.0.0.1", port)
    client.settimeout(5)
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass


def create_topic_in_child(kafka, sender):
    try:
        kafka.create_topic("orders")
    except RuntimeError as error:
        sender.send(str(error))
    finally:
        kafka.__exit__(None, None, None)


def test_forked_process_that_uses_the_broker_gets_an_error():
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    with EmbeddedBroker() as kafka:
        child = fork.Process(target=create_topic_in_child, args=(kafka, sender))
        child.start()
        assert receiver.poll(10)
        message = receiver.recv()
        child.join(10)
        kafka.create_topic("orders")

    assert 0 == child.exitcode
    assert f"the embedded broker runs in process {os.getpid()}" in message
