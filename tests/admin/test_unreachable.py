"""Unreachable brokers, on real sockets and in real time."""

import socket
import time

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.errors import ConnectionFailedError, RequestTimedOutError
from sharecons.testing import EmbeddedBroker

pytestmark = pytest.mark.anyio

HERE = TopicPartition("orders", 0)
QUESTIONS = [
    pytest.param(ask, id=name)
    for name, ask in {
        "list_groups": lambda admin: admin.list_groups(),
        "describe_share_groups": lambda admin: admin.describe_share_groups("g"),
        "list_share_group_offsets": lambda admin: admin.list_share_group_offsets("g"),
        "incremental_alter_configs": lambda admin: admin.incremental_alter_configs(
            "g", {"a": 1}
        ),
        "list_offsets": lambda admin: admin.list_offsets([HERE]),
        "describe_cluster": lambda admin: admin.describe_cluster(),
    }.items()
]


@pytest.fixture
def bound():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken


@pytest.mark.parametrize("ask", QUESTIONS)
async def test_refused_connection_fails_at_once(bound, ask):
    address = f"127.0.0.1:{bound.getsockname()[1]}"
    with anyio.fail_after(10):
        async with ShareGroupAdmin(address, connect_timeout=0) as admin:
            began = anyio.current_time()
            with pytest.raises(ConnectionFailedError, match=f"{address}.*refused"):
                await ask(admin)
            assert anyio.current_time() - began < 1


async def test_closed_port_is_tried_until_connect_timeout(bound):
    address = f"127.0.0.1:{bound.getsockname()[1]}"
    async with ShareGroupAdmin(address, connect_timeout=0.5) as admin:
        with pytest.raises(ConnectionFailedError) as caught:
            await admin.list_groups()

    assert str(caught.value) == (
        "no broker responded; tried for 0.5 s: "
        f"connecting to {address}: Connection refused"
    )


async def test_broker_that_starts_later_is_reached(bound):
    port = bound.getsockname()[1]
    bound.close()
    async with (
        ShareGroupAdmin(f"127.0.0.1:{port}") as admin,
        anyio.create_task_group() as tasks,
    ):

        async def list_groups() -> None:
            assert {} == (await admin.list_groups()).groups
            tasks.cancel_scope.cancel()

        with anyio.fail_after(10):
            tasks.start_soon(list_groups)
            await anyio.sleep(1)
            async with EmbeddedBroker(port=port):
                await anyio.sleep_forever()


@pytest.mark.parametrize("ask", QUESTIONS)
async def test_silent_listener_fails_at_the_timeout(bound, ask):
    bound.listen()
    address = f"127.0.0.1:{bound.getsockname()[1]}"
    with anyio.fail_after(10):
        async with ShareGroupAdmin(address, timeout=0.3) as admin:
            with pytest.raises(ConnectionFailedError, match=f"{address}.*no response"):
                await ask(admin)


class Busy:
    """Keeps the machine busy until all that was to happen meanwhile is late."""

    async def connect(self, endpoint):
        time.sleep(0.2)  # noqa: ASYNC251
        await anyio.sleep_forever()


@pytest.mark.parametrize("ask", QUESTIONS)
async def test_blocked_event_loop_still_reports_the_address(ask):
    with anyio.fail_after(10):
        async with ShareGroupAdmin("a:1", timeout=0.1, network=Busy()) as admin:
            with pytest.raises(
                ConnectionFailedError, match="a:1.*no response"
            ) as raised:
                await ask(admin)

    assert not isinstance(raised.value, RequestTimedOutError)
