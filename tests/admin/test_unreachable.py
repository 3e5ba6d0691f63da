"""Unreachable brokers, on real sockets and in real time."""

import socket
import time

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.errors import ConnectionFailedError, RequestTimedOutError
from sharecons.net.io.transport import TcpNetwork
from sharecons.testing import EmbeddedBroker
from tests.waiting import until

pytestmark = pytest.mark.anyio

HERE = TopicPartition("orders", 0)
CALLS = [
    pytest.param(call, id=name)
    for name, call in {
        "list_groups": lambda admin: admin.list_groups(),
        "describe_share_groups": lambda admin: admin.describe_share_groups("g"),
        "list_share_group_offsets": lambda admin: admin.list_share_group_offsets("g"),
        "alter_group_configs": lambda admin: admin.alter_group_configs("g", {"a": 1}),
        "list_offsets": lambda admin: admin.list_offsets([HERE]),
        "describe_cluster": lambda admin: admin.describe_cluster(),
    }.items()
]


@pytest.fixture
def bound():
    """Return a socket that has a port, and does not listen."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound


class CountedAttempts(TcpNetwork):
    """TCP that counts the failed attempts to connect."""

    failed = 0

    async def connect(self, endpoint):
        try:
            return await super().connect(endpoint)
        except OSError:
            self.failed += 1
            raise


@pytest.mark.parametrize("call", CALLS)
async def test_refused_connection_without_connect_timeout_is_not_retried(bound, call):
    address = f"127.0.0.1:{bound.getsockname()[1]}"
    network = CountedAttempts()
    with anyio.fail_after(10):
        async with ShareGroupAdmin(
            bootstrap_servers=address, connect_timeout=0, network=network
        ) as admin:
            with pytest.raises(ConnectionFailedError, match=f"{address}.*refused"):
                await call(admin)

    assert 1 == network.failed


async def test_closed_port_is_tried_until_connect_timeout(bound):
    address = f"127.0.0.1:{bound.getsockname()[1]}"
    async with ShareGroupAdmin(bootstrap_servers=address, connect_timeout=0.1) as admin:
        with pytest.raises(ConnectionFailedError) as caught:
            await admin.list_groups()

    assert str(caught.value) == (
        "no broker responded; tried for 0.1 s: "
        f"connecting to {address}: Connection refused"
    )


async def test_broker_that_starts_later_is_reached(bound):
    port = bound.getsockname()[1]
    bound.close()
    network = CountedAttempts()
    async with (
        ShareGroupAdmin(
            bootstrap_servers=f"127.0.0.1:{port}", network=network
        ) as admin,
        anyio.create_task_group() as tasks,
    ):

        async def list_groups() -> None:
            assert {} == (await admin.list_groups()).groups
            tasks.cancel_scope.cancel()

        with anyio.fail_after(10):
            tasks.start_soon(list_groups)
            await until(lambda: network.failed)
            async with EmbeddedBroker(port=port):
                await anyio.sleep_forever()


@pytest.mark.parametrize("call", CALLS)
async def test_silent_listener_fails_at_the_timeout(bound, call):
    bound.listen()
    address = f"127.0.0.1:{bound.getsockname()[1]}"
    with anyio.fail_after(10):
        async with ShareGroupAdmin(bootstrap_servers=address, timeout=0.1) as admin:
            with pytest.raises(ConnectionFailedError, match=f"{address}.*no response"):
                await call(admin)


class BlockingNetwork:
    """Blocks the event loop beyond the timeout of a call."""

    async def connect(self, endpoint):
        # real time: the clock has to pass while no task runs
        time.sleep(0.2)  # noqa: ASYNC251
        await anyio.sleep_forever()


@pytest.mark.parametrize("call", CALLS)
async def test_blocked_event_loop_still_reports_the_address(call):
    with anyio.fail_after(10):
        async with ShareGroupAdmin(
            bootstrap_servers="a:1", timeout=0.1, network=BlockingNetwork()
        ) as admin:
            with pytest.raises(
                ConnectionFailedError, match="a:1.*no response"
            ) as raised:
                await call(admin)

    assert not isinstance(raised.value, RequestTimedOutError)
