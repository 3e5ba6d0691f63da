"""TLS on each event loop, with a scripted server."""

import ssl
import struct
from functools import partial
from socket import SO_LINGER, SOL_SOCKET

import anyio
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSAttribute, TLSListener

from sharecons import Security, ShareConsumer
from sharecons.errors import AuthenticationError, ConnectionFailedError, Error
from sharecons.net.cluster import Cluster
from sharecons.net.io.transport import TcpNetwork
from sharecons.protocol.group.messages import FindCoordinator
from sharecons.protocol.partitions import Endpoint
from sharecons.testing import EmbeddedBroker
from tests.net.streams import Peer, frame
from tests.wire.oracle import from_hex

pytestmark = pytest.mark.anyio

HOST = "127.0.0.1"
REQUEST = FindCoordinator(group_id="billing")
RESPONSE = from_hex("00000000 02 08 'billing' 00000001 03 'b1' 00002384 0000 00 00 00")


@pytest.fixture(params=["asyncio", "uvloop", "trio"])
def anyio_backend(request):
    if request.param != "uvloop":
        return request.param
    pytest.importorskip("uvloop")
    return "asyncio", {"use_uvloop": True}


class QuietListener(TLSListener):
    """A listener that ignores failed handshakes: the client reports them."""

    @staticmethod
    async def handle_handshake_error(exc, stream):
        await anyio.aclose_forcefully(stream)


class Server:
    """A server with or without TLS; calls `serve` for each connection."""

    def __init__(self, serve, context=None):
        self._serve = serve
        self._context = context

    async def __aenter__(self):
        listener = await anyio.create_tcp_listener(local_host=HOST)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        if self._context is not None:
            listener = QuietListener(listener, self._context, standard_compatible=False)
        self._listener = listener
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(listener.serve, self._handle)
        return Endpoint(HOST, port)

    async def __aexit__(self, *exception):
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        await self._listener.aclose()

    async def _handle(self, stream):
        try:
            async with stream:
                await self._serve(Peer(stream))
        except (anyio.EndOfStream, anyio.BrokenResourceError, ssl.SSLError):
            pass  # the client has closed the connection


@pytest.fixture
def serving(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue(HOST, stem="of-this-host"))
    return context


@pytest.fixture
def of_another_host(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("broker.example.org", stem="of-another"))
    return context


async def respond_once(peer):
    await peer.send_versions()
    await peer.request()
    await peer.stream.send(frame(2, RESPONSE))
    await peer.closed_by_client()


async def close(peer):
    await peer.stream.receive()


async def send_request(endpoint, security, timeout=5.0):
    cluster = Cluster(
        [endpoint], client_id="me", software_version="1", security=security
    )
    connection = await cluster.connect(endpoint, timeout)
    try:
        return await connection.send(REQUEST, 5)
    finally:
        await connection.aclose()


async def test_request_over_tls_gets_a_response(authority, serving):
    async with Server(respond_once, serving) as endpoint:
        response = await send_request(endpoint, Security.tls(ca_file=authority.ca_file))

    assert response.endpoint == Endpoint("b1", 9092)


async def test_frames_longer_than_a_tls_record_are_complete(authority, serving):
    """A TLS record has at most 16 KiB."""
    content = bytes(range(256)) * (5 << 12)

    async def respond(peer):
        for _ in range(3):
            await peer.request()
            await peer.stream.send(len(content).to_bytes(4, "big") + content)
        await peer.closed_by_client()

    context = Security.tls(ca_file=authority.ca_file).ssl_context
    async with Server(respond, serving) as endpoint:
        wire = await TcpNetwork(context).connect(endpoint)
        for _ in range(3):
            got = await wire.exchange(b"\0\0\0\4ping", 10)
            assert got == content
            del got
        await wire.aclose()


async def test_certificate_of_another_host_is_rejected(authority, of_another_host):
    async with Server(respond_once, of_another_host) as endpoint:
        with pytest.raises(AuthenticationError) as caught:
            await send_request(endpoint, Security.tls(ca_file=authority.ca_file))

    message = str(caught.value)
    assert f"connecting to {endpoint}: the broker's certificate" in message
    assert "IP address mismatch" in message
    assert "check_hostname" in message


async def test_certificate_that_is_renewed_on_disk_is_used_by_the_next_connection(
    authority, serving
):
    serving.load_verify_locations(authority.ca_file)
    serving.verify_mode = ssl.CERT_REQUIRED
    found = []

    async def respond(peer):
        certificate = peer.stream.extra(TLSAttribute.peer_certificate)
        found.append(certificate["serialNumber"])
        await respond_once(peer)

    own = authority.issue("me@example.org", stem="renewed")
    security = Security.tls(ca_file=authority.ca_file, cert_file=own)
    async with Server(respond, serving) as endpoint:
        await send_request(endpoint, security)
        authority.issue("me@example.org", stem="next").replace(own)
        await send_request(endpoint, security)

    assert 2 == len(set(found))


async def test_host_name_check_can_be_disabled(authority, of_another_host):
    security = Security.tls(ca_file=authority.ca_file, check_hostname=False)

    async with Server(respond_once, of_another_host) as endpoint:
        assert await send_request(endpoint, security)


async def test_certificate_of_an_unknown_authority_is_rejected(stranger, serving):
    async with Server(respond_once, serving) as endpoint:
        with pytest.raises(AuthenticationError, match="unable to get local issuer"):
            await send_request(endpoint, Security.tls(ca_file=stranger.ca_file))


async def test_tls_at_a_plain_listener_is_an_error(authority):
    async with Server(close) as endpoint:
        with pytest.raises(ConnectionFailedError, match="is a TLS listener"):
            await send_request(endpoint, Security.tls(ca_file=authority.ca_file))


async def test_tls_at_a_listener_of_another_protocol_is_an_error(authority):
    async def respond(peer):
        await peer.stream.receive()
        await peer.stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.closed_by_client()

    async with Server(respond) as endpoint:
        with pytest.raises(ConnectionFailedError, match="does not use TLS"):
            await send_request(endpoint, Security.tls(ca_file=authority.ca_file))


async def send_alert(peer):
    await peer.stream.receive()
    await peer.stream.send(b"\x15\x03\x01\x00\x02\x02\x46")


async def reset(peer):
    await peer.stream.receive()
    raw = peer.stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))


TLS_ON_PLAIN = "a TLS port(: set security=Security.tls|, pass `security` .*SASL_SSL)"


@pytest.mark.parametrize("sasl", [None, Security.sasl("PLAIN", "a", "b", tls=False)])
async def test_error_of_plain_client_at_a_tls_port_has_a_hint(serving, sasl):
    async with Server(respond_once, serving) as endpoint:
        with pytest.raises(ConnectionFailedError, match=TLS_ON_PLAIN):
            await send_request(endpoint, sasl)


@pytest.mark.parametrize("serve", [send_alert, close, reset])
async def test_each_error_of_plain_client_at_a_tls_port_has_a_hint(serve):
    async with Server(serve) as endpoint:
        with pytest.raises(ConnectionFailedError, match=TLS_ON_PLAIN):
            await send_request(endpoint, None)


@pytest.mark.parametrize("serve", [close, reset])
async def test_each_error_of_tls_client_at_a_plain_port_has_a_hint(authority, serve):
    async with Server(serve) as endpoint:
        with pytest.raises(ConnectionFailedError, match="is a TLS listener"):
            await send_request(endpoint, Security.tls(ca_file=authority.ca_file))


@pytest.mark.slow("the broker closes the connection after a while")
async def test_error_of_tls_client_at_a_plain_broker_has_a_hint(authority):
    async with EmbeddedBroker() as broker:
        consumer = ShareConsumer(
            "orders",
            group_id="billing",
            bootstrap_servers=broker.bootstrap_servers,
            security=Security.tls(ca_file=authority.ca_file),
            connect_timeout=0.5,
        )
        with pytest.raises(ConnectionFailedError, match="is a TLS listener"):
            await consumer.__aenter__()


async def test_error_after_a_response_has_no_hint_at_tls():
    async def go_after_versions(peer):
        await peer.send_versions()
        await peer.request()

    async with Server(go_after_versions) as endpoint:
        with pytest.raises(ConnectionFailedError) as caught:
            await send_request(endpoint, None)
    assert "TLS" not in str(caught.value)


async def test_handshake_times_out(authority):
    async with Server(Peer.closed_by_client) as endpoint:
        with pytest.raises(Error, match="no response in time"):
            await send_request(
                endpoint, Security.tls(ca_file=authority.ca_file), timeout=0.2
            )


async def test_connection_closed_by_the_broker_is_an_error(authority, serving):
    async def go_after_versions(peer):
        await peer.send_versions()
        await peer.request()

    async with Server(go_after_versions, serving) as endpoint:
        with pytest.raises(ConnectionFailedError, match="closed the connection|reset"):
            await send_request(endpoint, Security.tls(ca_file=authority.ca_file))


async def test_closing_ends_pending_requests(authority, serving):
    async def silent(peer):
        await peer.send_versions()
        await peer.closed_by_client()

    security = Security.tls(ca_file=authority.ca_file)
    async with Server(silent, serving) as endpoint:
        cluster = Cluster(
            [endpoint], client_id="me", software_version="1", security=security
        )
        connection = await cluster.connect(endpoint)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(_fails, connection))
            await anyio.wait_all_tasks_blocked()
            await connection.aclose()


async def _fails(connection):
    with pytest.raises(ConnectionFailedError):
        await connection.send(REQUEST, 20)


async def _close(stream):
    await anyio.aclose_forcefully(stream)


async def _notify(stream):
    await stream.unwrap()


async def _send(stream):
    await stream.send(b"unrequested")


async def _break(stream):
    await stream.transport_stream.send(b"\x15\x03\x03\x00\x02\x02\x50")


@pytest.mark.parametrize("end", [_close, _notify, _send, _break])
async def test_end_of_an_idle_tls_connection_is_reported_without_a_request(
    authority, serving, end
):
    idle, reasons, news = anyio.Event(), [], anyio.Event()

    async def respond_then_end(peer):
        await peer.send_versions()
        await peer.request()
        await peer.stream.send(frame(2, RESPONSE))
        await idle.wait()
        await end(peer.stream)
        await news.wait()

    def lost(reason):
        reasons.append(reason)
        news.set()

    security = Security.tls(ca_file=authority.ca_file)
    async with Server(respond_then_end, serving) as endpoint:
        cluster = Cluster(
            [endpoint], client_id="me", software_version="1", security=security
        )
        connection = await cluster.connect(endpoint)
        await connection.send(REQUEST, 5)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.idle, news.wait, lost)
            await anyio.wait_all_tasks_blocked()
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            assert reasons == []  # TLS messages do not end the connection
            idle.set()

    assert [isinstance(reason, ConnectionFailedError) for reason in reasons] == [True]
    assert str(endpoint) in str(reasons[0])
    assert connection.closed
