"""Member requests that wait for other members, and the events that end it.

The clock is virtual.
"""

import anyio
import pytest

from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import ErrorCode, Header
from sharecons.testing.broker.context import ClientDisconnectedError, Context
from sharecons.testing.broker.coordinators import GROUP
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import wait_for_reply
from sharecons.testing.broker.groups.classic import ClassicGroup
from tests.broker.call_handler import Connection
from tests.broker.classic_groups import join, rejoin, sync

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True

HERE, ELSEWHERE = 1, 2


class WaitingJoin:
    """A stable group of member one, and member two, whose join waits."""

    def __init__(self, **fields):
        self.cluster = Cluster([Broker(HERE, "h", 1), Broker(ELSEWHERE, "h", 2)])
        for node_id in (HERE, ELSEWHERE):
            self.cluster.broker_started(node_id)
        self.cluster.coordinators.move(GROUP, "g", HERE)
        self.group = ClassicGroup("g")
        self.connection = Connection()
        self.context = Context(
            Header(11, 9, 1, "test"), self.cluster, HERE, self.connection
        )
        now = self.context.now
        join(self.group, "one", now, **fields)
        sync(self.group, "one", now)
        self.reply = join(self.group, "two", now, **fields)
        self.ended = None

    async def wait(self):
        try:
            self.ended = await wait_for_reply(self.context, self.group, self.reply)
        except (ClientDisconnectedError, GroupError) as error:
            self.ended = error

    async def wait_during(self, change):
        """Call `change` during the wait, and return the result of the wait."""
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.wait)
                await anyio.wait_all_tasks_blocked()
                assert self.ended is None
                change()
        return self.ended


async def test_rejoin_of_others_ends_the_wait():
    waiting = WaitingJoin()

    ended = await waiting.wait_during(
        lambda: rejoin(waiting.group, "one", waiting.context.now)
    )

    assert (ErrorCode.none, 2) == (ended.error, ended.generation_id)


async def test_rebalance_timeout_ends_the_wait():
    waiting = WaitingJoin(rebalance_timeout=5.0)

    ended = await waiting.wait_during(lambda: None)

    assert (ErrorCode.none, "two") == (ended.error, ended.leader)


async def test_disconnect_ends_the_wait_and_keeps_the_member():
    waiting = WaitingJoin()

    ended = await waiting.wait_during(waiting.connection.close)

    assert isinstance(ended, ClientDisconnectedError)
    assert waiting.group.members["two"].joining is waiting.reply


async def test_moved_coordinator_ends_the_wait():
    waiting = WaitingJoin()
    move = waiting.cluster.coordinators.move

    ended = await waiting.wait_during(lambda: move(GROUP, "g", ELSEWHERE))

    assert ErrorCode.not_coordinator is ended.code
    assert waiting.group.members["two"].joining is None
    assert waiting.group.members["two"].session_deadline < waiting.context.now + 11


async def test_stopped_coordinator_ends_the_wait():
    waiting = WaitingJoin()

    ended = await waiting.wait_during(lambda: waiting.cluster.broker_stopped(HERE))

    assert ErrorCode.not_coordinator is ended.code
