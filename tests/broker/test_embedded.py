"""Start and stop of `EmbeddedBroker`, its threads and its control methods."""

import asyncio
import contextvars
import socket
import threading
import time

import anyio
import anyio.to_thread
import pytest
import trio

from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.broker.errors import RequestError
from tests.broker.async_client import Client
from tests.broker.messages import METADATA, encode_request

BACKENDS = pytest.mark.anyio


def listens(address):
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def log_of(kafka, topic, partition=0):
    return kafka.cluster.topics.by_name(topic).partition(partition).log


def test_second_start_takes_under_fifty_milliseconds():
    with EmbeddedBroker():
        pass  # now all modules are imported
    took = []
    for _ in range(5):
        began = time.perf_counter()
        with EmbeddedBroker(brokers=3, topics={"orders": 6}):
            took.append(time.perf_counter() - began)

    assert min(took) < 0.05


def test_block_closes_threads_and_ports():
    before = threading.active_count()
    with EmbeddedBroker(brokers=3) as kafka:
        addresses = list(kafka.brokers.values())
        assert all(map(listens, addresses))

    assert before == threading.active_count()
    assert not any(map(listens, addresses))


@BACKENDS
async def test_runs_beside_an_async_test():
    async with EmbeddedBroker(topics={"orders": 3}) as kafka:
        broker = kafka.cluster.brokers[1]
        async with await anyio.connect_tcp(broker.host, broker.port) as stream:
            response = await Client(stream).request(METADATA)

    assert [("orders", 3)] == [(t.name, len(t.partitions)) for t in response.topics]


@BACKENDS
async def test_error_in_async_block_propagates_unchanged():
    with pytest.raises(LookupError, match="mine"):
        async with EmbeddedBroker():
            raise LookupError("mine")


def test_error_in_sync_block_propagates_unchanged():
    with pytest.raises(LookupError, match="mine"):
        with EmbeddedBroker():
            raise LookupError("mine")


@BACKENDS
async def test_cancelled_block_closes_ports():
    with anyio.CancelScope() as scope:
        async with EmbeddedBroker() as kafka:
            scope.cancel()
            await anyio.sleep_forever()

    assert scope.cancelled_caught
    assert not listens(kafka.bootstrap_servers)


def test_used_port_raises_with_its_address():
    with EmbeddedBroker() as first:
        port = first.cluster.brokers[1].port
        with pytest.raises(OSError, match=f":{port}: Address already in use"):
            EmbeddedBroker(port=port).__enter__()


@BACKENDS
async def test_used_port_raises_in_async_block():
    async with EmbeddedBroker() as first:
        port = first.cluster.brokers[1].port
        with pytest.raises(OSError, match=f":{port}: Address already in use"):
            async with EmbeddedBroker(port=port):
                pass


def test_failed_start_closes_everything():
    with EmbeddedBroker() as other:
        before = threading.active_count()
        taken = other.cluster.brokers[1].port
        with pytest.raises(OSError):
            with EmbeddedBroker(brokers=2, port=taken - 1):
                pass
        assert not listens(f"127.0.0.1:{taken - 1}")

    assert threading.active_count() < before


def test_invalid_topic_raises():
    with pytest.raises(RequestError, match="invalid"):
        with EmbeddedBroker(topics={"no/slash": 1}):
            pass
    with pytest.raises(RequestError, match="topic 'two': Number of partitions"):
        with EmbeddedBroker(topics={"one": 1, "two": 0}):
            pass


def test_restarted_broker_keeps_its_port():
    with EmbeddedBroker(brokers=2) as kafka:
        before = dict(kafka.brokers)
        for _ in range(20):
            kafka.stop_broker(2)
            assert not listens(kafka.brokers[2])
            assert frozenset({1}) == kafka.running
            kafka.start_broker(2)
            assert listens(kafka.brokers[2])

        assert before == kafka.brokers


@BACKENDS
async def test_broker_stops_and_starts_synchronously():
    async with EmbeddedBroker(brokers=2) as kafka:
        for _ in range(3):
            kafka.stop_broker(2)
            assert not listens(kafka.brokers[2])
            kafka.start_broker(2)
            assert listens(kafka.brokers[2])
            await anyio.lowlevel.checkpoint()
        broker = kafka.cluster.brokers[2]
        async with await anyio.connect_tcp(broker.host, broker.port) as stream:
            assert 2 == len((await Client(stream).request(METADATA)).brokers)


def restart(kafka):
    kafka.stop_broker(2)
    kafka.start_broker(2)
    kafka.produce("orders", [b"x"])
    kafka.set_group_config("g", {"share.record.lock.duration.ms": 20000})


def test_broker_is_controlled_in_a_callback_of_asyncio():
    async def main():
        async with EmbeddedBroker(brokers=2, topics={"orders": 1}) as kafka:
            called = asyncio.get_running_loop().create_future()

            def callback():
                try:
                    called.set_result(restart(kafka))
                except Exception as error:
                    called.set_exception(error)

            asyncio.get_running_loop().call_soon(
                callback, context=contextvars.Context()
            )
            await called
            assert {1, 2} == kafka.running
            broker = kafka.cluster.brokers[2]
            async with await anyio.connect_tcp(broker.host, broker.port) as stream:
                assert 2 == len((await Client(stream).request(METADATA)).brokers)
        assert not listens(kafka.brokers[2])

    asyncio.run(main())


def test_broker_is_controlled_in_a_callback_of_trio():
    async def main():
        async with EmbeddedBroker(brokers=2, topics={"orders": 1}) as kafka:
            called = anyio.Event()

            def callback():
                restart(kafka)
                called.set()

            trio.lowlevel.current_trio_token().run_sync_soon(callback)
            await called.wait()
            assert {1, 2} == kafka.running

    trio.run(main)


@BACKENDS
async def test_async_broker_is_controlled_from_other_threads():
    async with EmbeddedBroker() as kafka:
        await anyio.to_thread.run_sync(kafka.create_topic, "orders", 4)

        assert 4 == len(kafka.cluster.topics.by_name("orders").partitions)


def test_broker_that_is_not_running_raises():
    with pytest.raises(RuntimeError, match="enter it first"):
        EmbeddedBroker().create_topic("orders")
    with pytest.raises(RuntimeError, match="enter it first"):
        _ = EmbeddedBroker().bootstrap_servers
    assert "127.0.0.1:9092" == EmbeddedBroker(port=9092).bootstrap_servers


@BACKENDS
async def test_broker_that_is_started_again_keeps_ports_and_records():
    kafka = EmbeddedBroker(brokers=2, topics={"orders": 2})
    async with kafka:
        kafka.produce("orders", [b"one"])
        before = dict(kafka.brokers)
    async with kafka:
        assert before == kafka.brokers
        assert all(map(listens, before.values()))
        assert [b"one"] == [each.value for each in kafka.records("orders")]
        kafka.produce("orders", [b"two"])

    assert not any(map(listens, before.values()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topics": ["orders"]}, "topics must map names to numbers of partitions"),
        ({"topics": "orders"}, "topics must map names to numbers of partitions"),
        ({"topics": {"orders": "3"}}, "'orders': the number of partitions must be"),
        ({"topics": {3: 1}}, "the name of a topic must be a str, not 3"),
        ({"brokers": "3"}, "brokers must be an int, not '3'"),
        ({"port": "9092"}, "port must be an int, not '9092'"),
        ({"settings": ["x"]}, "broker settings must map names to values"),
        ({"coordinator_move_time": "2"}, "coordinator_move_time must be a number of s"),
    ],
)
def test_argument_of_a_wrong_type_raises(arguments, message):
    with pytest.raises(TypeError, match=message):
        EmbeddedBroker(**arguments)


def test_negative_move_time_raises():
    with pytest.raises(ValueError, match="coordinator_move_time must be at least 0"):
        EmbeddedBroker(coordinator_move_time=-1)


def test_unknown_names_raise():
    with EmbeddedBroker(topics={"orders": 1}) as kafka:
        with pytest.raises(LookupError, match="topic 'jobs' does not exist"):
            kafka.produce("jobs", [b"x"])
        with pytest.raises(LookupError, match="topic 'orders' has no partition 1"):
            kafka.produce("orders", [b"x"], partition=1)
        with pytest.raises(LookupError, match="broker 7 does not exist"):
            kafka.stop_broker(7)
        with pytest.raises(LookupError, match="broker 7 does not exist or is stopped"):
            kafka.move_coordinator("g", 7)
        with pytest.raises(LookupError, match="share group 'g' does not exist"):
            kafka.forget_member("g", "m")
        with pytest.raises(LookupError, match="no consumer has joined a share group"):
            kafka.forget_session("g", "m")
        with pytest.raises(LookupError, match="share group 'g' does not exist"):
            kafka.expire_locks("g")


@BACKENDS
@pytest.mark.parametrize(
    ("timeout", "error"), [("1", TypeError), (None, TypeError), (-1, ValueError)]
)
async def test_wait_with_an_invalid_timeout_raises(timeout, error):
    with pytest.raises(error, match="timeout must be "):
        await EmbeddedBroker().wait_until_settled("g", timeout=timeout)


@pytest.mark.parametrize(
    ("timeout", "error"), [("1", TypeError), (None, TypeError), (-1, ValueError)]
)
def test_blocking_wait_with_an_invalid_timeout_raises(timeout, error):
    with pytest.raises(error, match="timeout must be "):
        EmbeddedBroker().wait_until_settled_sync("g", timeout=timeout)


@BACKENDS
async def test_clients_connect_over_memory():
    async with EmbeddedBroker(brokers=2, listen=False) as kafka:
        for where in (2, 9093):
            response = await Client(kafka.connect(where)).request(METADATA)
            assert [9092, 9093] == [broker.port for broker in response.brokers]
        kafka.stop_broker(2)
        with pytest.raises(ConnectionRefusedError):
            kafka.connect(2)
        with pytest.raises(TypeError, match="network=broker.network"):
            kafka.connect(kafka)


def test_requests_are_logged():
    with EmbeddedBroker() as kafka:
        with socket.create_connection(
            ("127.0.0.1", kafka.cluster.brokers[1].port)
        ) as s:
            s.sendall(encode_request(METADATA, client_id="someone"))
            s.recv(65536)
        (request,) = kafka.requests
        kafka.forget_requests()

        assert ("Metadata", 12, "someone", 1) == request[:4]
        assert [] == kafka.requests


def test_records_of_a_partition_are_one_batch():
    with EmbeddedBroker(topics={"orders": 2}) as kafka:
        kafka.produce("orders", [b"a", "b", None], partition=1)

        assert 0 == log_of(kafka, "orders", 0).end_offset
        assert 3 == log_of(kafka, "orders", 1).end_offset
        assert 1 == len(log_of(kafka, "orders", 1).batches(0, 3, 1 << 20))


def test_keys_choose_partitions_and_others_rotate():
    with EmbeddedBroker(topics={"round": 3, "keyed": 3}) as kafka:
        kafka.produce("round", [b"x"] * 9)
        kafka.produce("keyed", [b"x"] * 9, keys=["same"] * 9)

        assert [3, 3, 3] == [log_of(kafka, "round", i).end_offset for i in range(3)]
        ends = sorted(log_of(kafka, "keyed", i).end_offset for i in range(3))
        assert [0, 0, 9] == ends


def test_batch_argument_limits_batch_size():
    with EmbeddedBroker(topics={"orders": 1}) as kafka:
        kafka.produce("orders", [b"%d" % i for i in range(10)], batch=4)
        batches = log_of(kafka, "orders").batches(0, 10, 1 << 20)

        assert [(0, 3), (4, 7), (8, 9)] == [
            (batch.base_offset, batch.last_offset) for batch in batches
        ]


def test_leaders_and_coordinators_can_be_moved():
    with EmbeddedBroker(brokers=3, topics={"orders": 1}) as kafka:
        for node in (2, 3, 1):
            kafka.move_leader("orders", 0, node)
            assert node == kafka.leader("orders")
            kafka.move_coordinator("g", node)
            assert node == kafka.coordinator("g")


@BACKENDS
@pytest.mark.parametrize(
    "anyio_backend", [virtual_time.backend(name) for name in virtual_time.BACKENDS]
)
async def test_broker_with_ports_on_a_virtual_clock_fails_with_a_hint():
    kafka = EmbeddedBroker()

    with pytest.raises(RuntimeError, match=r"virtual clock.*listen=False"):
        await kafka.start()
    with pytest.raises(RuntimeError, match=r"virtual clock.*listen=False"):
        kafka.__enter__()
    with pytest.raises(RuntimeError, match="is not running"):
        kafka.create_topic("orders")
