"""Requests that follow a response on a connection, with any transport."""

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
from tests.net.test_connection import COORDINATOR, REQUEST, RESPONSE, connected, served
from tests.protocol.message_factories import SETTINGS

pytestmark = pytest.mark.anyio


def recording_handler(*results):
    """Return a list of responses, and a handler that returns `results`, then None."""
    responses, remaining = [], list(results)

    def on_response(response):
        responses.append(response)
        return remaining.pop(0) if remaining else None

    return responses, on_response


NEXT = NextRequest(REQUEST, 1.0)
RESPONSE_FRAMES = [frame(number, RESPONSE) for number in (2, 3, 4)]


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([NEXT, NEXT], id="at once"),
        pytest.param([Deferred(lambda: NEXT)] * 2, id="later"),
        pytest.param([NEXT, NEXT, Deferred(lambda: None)], id="nothing, later"),
    ],
)
async def test_ask_continues_until_no_request_follows(results):
    responses, on_response = recording_handler(*results)
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, served(*RESPONSE_FRAMES)))

        await connection.ask(REQUEST, 1.0, on_response)
        assert [COORDINATOR] * 3 == responses
        assert not connection.closed
        await connection.aclose()


async def test_next_request_may_be_of_another_type():
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
    responses, on_response = recording_handler(NextRequest(other, 1.0))
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, served(*RESPONSE_FRAMES)))

        with pytest.raises(ProtocolError, match="cannot write a ShareFetch"):
            await connection.ask(REQUEST, 1.0, on_response)
        await connection.aclose()
    assert [COORDINATOR] == responses


async def test_next_request_has_its_own_timeout():
    _, on_response = recording_handler(NextRequest(REQUEST, 0.02))
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, served(RESPONSE_FRAMES[0])))

        with pytest.raises(RequestTimedOutError, match="FindCoordinator to broker"):
            await connection.ask(REQUEST, 60.0, on_response)
        assert connection.closed


async def test_response_with_an_old_correlation_id_raises():
    _, on_response = recording_handler(NEXT)
    responses = [RESPONSE_FRAMES[0], RESPONSE_FRAMES[0]]
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, served(*responses)))

        with pytest.raises(ProtocolError, match="response to request 2 instead of 3"):
            await connection.ask(REQUEST, 1.0, on_response)


async def test_connection_lost_during_the_next_request_raises():
    async def serve(peer):
        await peer.answer_versions()
        await peer.request()
        await peer.stream.send(RESPONSE_FRAMES[0])
        await peer.request()
        await peer.stream.aclose()

    responses, on_response = recording_handler(NEXT)
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, partial(serve)))

        with pytest.raises(ConnectionFailedError, match="closed the connection$"):
            await connection.ask(REQUEST, 1.0, on_response)
    assert [COORDINATOR] == responses


class SometimesDue(SaslSession):
    """A login whose session ends when a test says so."""

    def __init__(self):
        self.over = False

    @property
    def is_due(self):
        return self.over


def test_no_request_is_pipelined_while_authentication_is_due():
    """It would have to leave first, and nothing may be under way then."""
    numbers, login, found = CorrelationIds("me"), SometimesDue(), []

    def look():
        found.append(True)
        return NEXT

    kind = type(REQUEST)
    api = registry.api_of(kind)
    version = min(api.versions[-1], SERVED[api.key][1])
    _, on_response = recording_handler(NextRequest(REQUEST, 1.0, look))
    asking = RequestExchange(kind, api, version, numbers, login, on_response)
    numbers.next_frame(api.key, version, b"")

    onward = asking.read(memoryview(frame(1, RESPONSE)[4:]))
    login.over = True

    assert onward.on_partial() is None
    assert [] == found
    login.over = False
    assert onward.on_partial() is not None
