"""What follows an answer on a connection, whatever its wire does about it."""

from functools import partial

import anyio
import pytest

from sharecons.errors import (
    ConnectionFailedError,
    ProtocolError,
    RequestTimedOutError,
)
from sharecons.net.io.pipeline import (
    CorrelationIds,
    Deferred,
    NextRequest,
    RequestExchange,
)
from sharecons.net.io.sasl import SaslSession
from sharecons.protocol.messages import ShareFetch
from sharecons.wire.codec import registry
from tests.net.streams import SERVED, MemoryNetwork, frame
from tests.net.test_connection import ANSWER, FOUND, QUESTION, connected, served
from tests.protocol.making import SETTINGS

pytestmark = pytest.mark.anyio


def hearing(*gives):
    """Hear answers, and give what is told for each; nothing after that."""
    answers, left = [], list(gives)

    def hear(told):
        answers.append(told)
        return left.pop(0) if left else None

    return answers, hear


FOLLOWING = NextRequest(QUESTION, 1.0)
ANSWERS = [frame(number, ANSWER) for number in (2, 3, 4)]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([FOLLOWING, FOLLOWING], id="at once"),
        pytest.param([Deferred(lambda: FOLLOWING)] * 2, id="later"),
        pytest.param(
            [FOLLOWING, FOLLOWING, Deferred(lambda: None)], id="nothing, later"
        ),
    ],
)
async def test_what_is_heard_is_followed_until_nothing_follows(given):
    answers, hear = hearing(*given)
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, served(*ANSWERS)))

        await connection.ask(QUESTION, 1.0, hear)
        assert [FOUND] * 3 == answers
        assert not connection.closed
        await connection.aclose()


async def test_what_follows_may_be_of_another_kind():
    """Which is not sent by the wire: it has a version of its own, and a name."""
    other = ShareFetch(
        group_id="billing",
        member_id=SETTINGS.member_id,
        share_session_epoch=0,
        max_wait=-1e12,  # no number of Kafka's
        min_bytes=1,
        max_bytes=1,
        max_records=1,
        record_limit=False,
        added=frozenset(),
        forgotten=frozenset(),
        acknowledgements={},
    )
    answers, hear = hearing(NextRequest(other, 1.0))
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, served(*ANSWERS)))

        with pytest.raises(ProtocolError, match="cannot write a ShareFetch"):
            await connection.ask(QUESTION, 1.0, hear)
        await connection.aclose()
    assert [FOUND] == answers


async def test_what_follows_has_a_time_of_its_own():
    _, hear = hearing(NextRequest(QUESTION, 0.02))
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, served(ANSWERS[0])))

        with pytest.raises(RequestTimedOutError, match="FindCoordinator to broker"):
            await connection.ask(QUESTION, 60.0, hear)
        assert connection.closed


async def test_an_answer_to_what_came_before_is_none_to_what_follows():
    _, hear = hearing(FOLLOWING)
    answers = [ANSWERS[0], ANSWERS[0]]
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, served(*answers)))

        with pytest.raises(ProtocolError, match="response to request 2 instead of 3"):
            await connection.ask(QUESTION, 1.0, hear)


async def test_a_connection_cut_while_what_follows_is_under_way():
    async def serve(peer):
        await peer.answer_versions()
        await peer.request()
        await peer.stream.send(ANSWERS[0])
        await peer.request()
        await peer.stream.aclose()

    answers, hear = hearing(FOLLOWING)
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, partial(serve)))

        with pytest.raises(ConnectionFailedError, match="closed the connection$"):
            await connection.ask(QUESTION, 1.0, hear)
    assert [FOUND] == answers


class SometimesDue(SaslSession):
    """A login whose session ends when a test says so."""

    def __init__(self):
        self.over = False

    @property
    def is_due(self):
        return self.over


def test_nothing_is_sent_behind_a_request_while_a_login_is_due():
    """It would have to leave first, and nothing may be under way then."""
    numbers, login, found = CorrelationIds("me"), SometimesDue(), []

    def look():
        found.append(True)
        return FOLLOWING

    kind = type(QUESTION)
    api = registry.api_of(kind)
    version = min(api.versions[-1], SERVED[api.key][1])
    _, hear = hearing(NextRequest(QUESTION, 1.0, look))
    asking = RequestExchange(kind, api, version, numbers, login, hear)
    numbers.next_frame(api.key, version, b"")

    onward = asking.read(memoryview(frame(1, ANSWER)[4:]))
    login.over = True

    assert onward.on_partial() is None
    assert [] == found
    login.over = False
    assert onward.on_partial() is not None
