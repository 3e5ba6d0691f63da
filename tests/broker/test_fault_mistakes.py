"""Mistakes in faults: without an error, a test would pass without its fault."""

import math

import pytest

from sharecons.testing import EmbeddedBroker
from tests.broker.async_client import Client
from tests.broker.messages import VERSIONS

VIRTUAL_CLOCK = True


@pytest.fixture(scope="module")
def faults():
    with EmbeddedBroker() as broker:
        yield broker.faults


@pytest.mark.parametrize(
    ("choice", "error", "message"),
    [
        ({"times": 0}, ValueError, "times must be at least 1, not 0"),
        ({"times": "2"}, TypeError, "times must be an int, not '2'"),
        ({"after": -1}, ValueError, "after must be at least 0, not -1"),
        ({"node": 9}, LookupError, "broker 9 does not exist"),
        ({"node": "1"}, LookupError, "broker '1' does not exist"),
        ({"where": "x"}, TypeError, "where needs a function, not 'x'"),
    ],
)
def test_wrong_choice_of_requests_raises(faults, choice, error, message):
    with pytest.raises(error, match=message):
        faults.on("ShareFetch", **choice)


def test_coroutine_function_as_where_raises(faults):
    async def where(request, context):
        return True

    with pytest.raises(TypeError, match="where must be a plain function"):
        faults.on("ShareFetch", where=where)


@pytest.mark.parametrize("action", ["stall", "delay", "throttle"])
@pytest.mark.parametrize("seconds", ["1", -1, math.nan, None])
def test_wrong_seconds_raise(faults, action, seconds):
    with pytest.raises((TypeError, ValueError), match="seconds must be"):
        getattr(faults.on("ShareFetch"), action)(seconds)


@pytest.mark.parametrize("action", ["respond", "change", "corrupt"])
def test_action_without_a_function_raises(faults, action):
    with pytest.raises(TypeError, match=f"{action} needs a function"):
        getattr(faults.on("ShareFetch"), action)({"error_code": 0})


def fail(*arguments):
    raise AssertionError("of the test")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "begin",
    [
        lambda faults: faults.on("ApiVersions", times=None, where=fail).cut(),
        lambda faults: faults.on("ApiVersions", times=None).respond(fail),
        lambda faults: faults.on("ApiVersions", times=None).change(fail),
        lambda faults: faults.on("ApiVersions", times=None).corrupt(fail),
    ],
)
async def test_error_of_a_function_is_raised_when_the_broker_stops(begin):
    broker = EmbeddedBroker(listen=False)
    await broker.start()
    begin(broker.faults)
    failing = Client(broker.connect(1))
    await failing.send(VERSIONS)

    assert await failing.ended()
    assert (await Client(broker.connect(1)).request(VERSIONS)).api_keys
    assert [] == broker.faults.active
    with pytest.raises(AssertionError, match="of the test") as raised:
        await broker.stop()
    assert ["raised in a fault of ApiVersions"] == raised.value.__notes__
    await broker.stop()  # it has been raised


@pytest.mark.anyio
async def test_change_that_returns_none_is_an_error():
    broker = EmbeddedBroker(listen=False)
    await broker.start()
    broker.faults.on("ApiVersions").change(lambda response, context: None)
    client = Client(broker.connect(1))
    await client.send(VERSIONS)

    assert await client.ended()
    with pytest.raises(TypeError, match="`change` must return a response"):
        await broker.stop()
