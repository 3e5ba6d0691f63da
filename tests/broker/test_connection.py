"""Connections of the embedded broker: order of responses, invalid frames, closing."""

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from tests.broker.async_client import Client
from tests.broker.messages import VERSIONS, encode_request

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["tcp", "memory"])
async def connected(request):
    """Connect a client to a broker."""
    async with EmbeddedBroker(listen=request.param == "tcp") as kafka:
        broker = kafka.cluster.brokers[1]
        if request.param == "tcp":
            stream = await anyio.connect_tcp(broker.host, broker.port)
        else:
            stream = kafka.connect(1)
        async with stream:
            yield kafka, Client(stream)


async def test_pipelined_requests_get_responses_in_order(connected):
    _, client = connected
    for _ in range(5):
        await client.send(VERSIONS)

    ids = [int.from_bytes((await client.frame())[:4], "big") for _ in range(5)]
    assert [1, 2, 3, 4, 5] == ids


async def test_request_can_arrive_byte_by_byte(connected):
    _, client = connected
    for byte in encode_request(VERSIONS):
        await client.stream.send(bytes([byte]))

    assert not (await client.receive(VERSIONS)).error_code


async def test_newer_api_versions_request_gets_response_in_version_0(connected):
    _, client = connected
    newest = bytearray(encode_request(VERSIONS))
    newest[6:8] = (99).to_bytes(2, "big")
    await client.stream.send(bytes(newest))
    frame = await client.frame()

    # Correlation id, UNSUPPORTED_VERSION, and one API: its own, 0 to 4.
    assert (1).to_bytes(4, "big") == frame[:4]
    assert (35).to_bytes(2, "big") == frame[4:6]
    assert b"\0\0\0\1" + b"\0\x12" + b"\0\0" + b"\0\4" == frame[6:]


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff" * 4,
        b"\0\0\0\x02ab",
        (20).to_bytes(4, "big") + (999).to_bytes(2, "big") + bytes(18),
        (20).to_bytes(4, "big") + (3).to_bytes(2, "big") + b"\0\x63" + bytes(16),
        (20).to_bytes(4, "big") + (3).to_bytes(2, "big") + b"\0\x0c" + b"\xff" * 16,
        # Metadata 12 and 1, for more topics than there is memory.
        b"\0\0\0\x10\0\x03\0\x0c" + bytes(7) + b"\xff\xff\xff\xff\x0f",
        b"\0\0\0\x0e\0\x03\0\x01" + bytes(6) + b"\x7f\xff\xff\xff",
    ],
    ids=[
        "http",
        "negative",
        "short",
        "unknown api",
        "unknown version",
        "damaged",
        "huge",
        "huge in an old version",
    ],
)
async def test_invalid_frame_closes_the_connection(connected, garbage):
    kafka, client = connected
    await client.stream.send(garbage)

    with anyio.fail_after(5):
        assert await client.ended()
    assert [] == kafka.requests


async def test_cut_connection_sends_no_responses(connected):
    kafka, client = connected
    await client.request(VERSIONS)
    kafka.stop_broker(1)

    with anyio.fail_after(5):
        assert await client.ended()


async def test_disconnect_affects_only_its_connection(connected):
    kafka, client = connected
    other = kafka.connect(1)
    await other.aclose()
    await anyio.wait_all_tasks_blocked()

    assert not (await client.request(VERSIONS)).error_code


async def test_failing_handler_returns_unknown_server_error(
    connected, monkeypatch, caplog
):
    _, client = connected

    async def broken(request, context):
        raise LookupError("a bug")

    monkeypatch.setattr("sharecons.testing.broker.handlers.api_versions.handle", broken)
    response = await client.request(VERSIONS)

    assert -1 == response.error_code
    assert "a bug" in caplog.text
