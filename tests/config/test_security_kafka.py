"""A real Kafka lets us in where it should, and says why where it should not."""

import time

import anyio
import pytest

from sharecons import Security, ShareConsumer
from sharecons.config import settings
from sharecons.config.properties.tokens import unsecured
from sharecons.config.validation import parse_bootstrap
from sharecons.errors import AuthenticationError, ConnectionFailedError
from sharecons.net.cluster import Cluster
from sharecons.protocol.messages import FindCoordinator
from tests.config.authority import PASSWORD as STORE_PASSWORD
from tests.config.conftest import NAME, PASSWORD, quoted

pytestmark = [pytest.mark.anyio, pytest.mark.kafka, pytest.mark.slow]

NAMED = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def cluster(bootstrap, security):
    return Cluster(
        parse_bootstrap(bootstrap),
        client_id="me",
        software_version="1",
        security=security,
    )


async def asked(bootstrap, security):
    """One question, over a connection of its own."""
    connection = await cluster(bootstrap, security).connect_any(timeout=10)
    try:
        return await connection.ask(FindCoordinator(group_id="security"), 20)
    finally:
        await connection.aclose()


def ways(authority):
    """Each way in: listener and `Security`."""
    tls = Security.tls(ca_file=authority.ca_file)
    mine = authority.issue("me@example.org", stem="me")
    for mechanism in NAMED:
        named = Security.sasl(mechanism, NAME, PASSWORD, tls=False)
        yield f"{mechanism}", "NAMED", named
        over_tls = Security.sasl(mechanism, NAME, PASSWORD, tls=tls)
        yield f"{mechanism} over TLS", "NAMEDTLS", over_tls
    token = unsecured({"sub": NAME})
    yield "OAUTHBEARER", "NAMED", Security.oauthbearer(token, tls=False)
    yield "OAUTHBEARER over TLS", "NAMEDTLS", Security.oauthbearer(token, tls=tls)
    yield "TLS", "TLS", tls
    own = Security.tls(ca_file=authority.ca_file, cert_file=mine)
    yield "certificates of both", "MUTUAL", own


async def test_every_way_in_gets_an_answer(secure_kafka, authority):
    for name, listener, security in ways(authority):
        answer = await asked(secure_kafka.at(listener), security)

        assert answer is not None, name


@pytest.mark.parametrize("way", ["SCRAM-SHA-512 over TLS", "PLAIN", "certificates"])
async def test_consumer_gets_its_records(secure_kafka, authority, way):
    _, listener, security = next(
        found for found in ways(authority) if found[0].startswith(way)
    )
    topic = secure_kafka.admin.create_topic()
    secure_kafka.admin.produce(topic, [b"1", b"2", b"3"])
    got = []

    with anyio.fail_after(40):
        async with ShareConsumer(
            topic,
            group_id=topic,
            bootstrap_servers=secure_kafka.at(listener),
            auto_offset_reset="earliest",
            security=security,
        ) as consumer:
            async for record in consumer:
                got.append(record.value)
                if len(got) == 3:
                    break

    assert [b"1", b"2", b"3"] == got


@pytest.mark.parametrize("mechanism", NAMED)
async def test_wrong_password_fails_at_once(secure_kafka, mechanism):
    started = time.monotonic()
    consumer = ShareConsumer(
        "orders",
        group_id="security",
        bootstrap_servers=secure_kafka.at("NAMED"),
        security=Security.sasl(mechanism, NAME, "wrong", tls=False),
    )

    with pytest.raises(AuthenticationError) as caught:
        async with consumer:
            pass

    said = str(caught.value)
    assert secure_kafka.at("NAMED") in said
    assert f"{mechanism} as 'alice': Authentication failed" in said
    assert "wrong" not in said
    assert time.monotonic() - started < 3


async def test_token_that_is_refused(secure_kafka):
    expired = unsecured({"sub": NAME}, lifetime=-100)

    with pytest.raises(AuthenticationError, match="OAUTHBEARER: .*invalid_token"):
        await asked(secure_kafka.at("NAMED"), Security.oauthbearer(expired, tls=False))


async def test_token_may_be_awaited(secure_kafka):
    async def token():
        await anyio.lowlevel.checkpoint()
        return unsecured({"sub": NAME})()

    answer = await asked(
        secure_kafka.at("NAMED"),
        Security.oauthbearer(token, extensions={"tenant": "x"}, tls=False),
    )

    assert answer is not None


async def test_source_of_tokens_that_fails(secure_kafka):
    def token():
        raise RuntimeError("the vault is shut")

    with pytest.raises(ConnectionFailedError, match="RuntimeError: the vault is shut"):
        await asked(secure_kafka.at("NAMED"), Security.oauthbearer(token, tls=False))


async def test_sasl_where_nobody_asks(secure_kafka):
    plain = secure_kafka.cluster.bootstrap_servers
    security = Security.sasl("PLAIN", NAME, PASSWORD, tls=False)

    with pytest.raises(AuthenticationError, match="connect without SASL"):
        await asked(plain, security)


async def test_no_sasl_where_it_is_wanted(secure_kafka):
    with pytest.raises(ConnectionFailedError, match="if this listener requires SASL"):
        await asked(secure_kafka.at("NAMED"), None)


async def test_no_tls_where_it_is_wanted(secure_kafka):
    with pytest.raises(ConnectionFailedError, match="a TLS"):
        await asked(secure_kafka.at("TLS"), None)


async def test_tls_where_there_is_none(secure_kafka, authority):
    security = Security.tls(ca_file=authority.ca_file)

    with pytest.raises(ConnectionFailedError, match="is a TLS listener"):
        await asked(secure_kafka.cluster.bootstrap_servers, security)


async def test_broker_of_another_authority(secure_kafka, stranger):
    security = Security.tls(ca_file=stranger.ca_file)

    with pytest.raises(AuthenticationError, match="certificate was rejected.*ca_fi"):
        await asked(secure_kafka.at("TLS"), security)


async def test_own_certificate_is_missing(secure_kafka, authority):
    security = Security.tls(ca_file=authority.ca_file)

    with pytest.raises(
        AuthenticationError, match="the client.s certificate.*cert_file"
    ):
        await asked(secure_kafka.at("MUTUAL"), security)


async def test_own_certificate_is_not_believed(secure_kafka, authority, stranger):
    mine = stranger.issue("me@example.org", stem="me")
    security = Security.tls(ca_file=authority.ca_file, cert_file=mine)

    with pytest.raises(AuthenticationError, match="rejected the client.s certificate"):
        await asked(secure_kafka.at("MUTUAL"), security)


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
async def test_session_is_renewed_on_the_same_connection(secure_kafka, mechanism):
    """The broker hangs up on whatever is asked after 3 s without that."""
    given = []

    def token():
        given.append(1)
        return unsecured({"sub": NAME})()

    if mechanism == "OAUTHBEARER":
        security = Security.oauthbearer(token, tls=False)
    else:
        security = Security.sasl(mechanism, NAME, PASSWORD, tls=False)
    connection = await cluster(secure_kafka.at("SHORT"), security).connect_any()

    try:
        for _ in range(3):
            # Time itself is what this is about.
            await anyio.sleep(1.4)
            assert await connection.ask(FindCoordinator(group_id="g"), 20)
        await anyio.sleep(3.5)
        assert await connection.ask(FindCoordinator(group_id="g"), 20)
    finally:
        await connection.aclose()
    assert mechanism != "OAUTHBEARER" or len(given) == 3


async def test_consumer_outlives_its_sessions(secure_kafka):
    topic = secure_kafka.admin.create_topic()
    got = []

    with anyio.fail_after(60):
        async with ShareConsumer(
            topic,
            group_id=topic,
            bootstrap_servers=secure_kafka.at("SHORT"),
            auto_offset_reset="earliest",
            security=Security.sasl("SCRAM-SHA-256", NAME, PASSWORD, tls=False),
        ) as consumer:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_trickle, secure_kafka.admin, topic)
                async for record in consumer:
                    got.append((record.value, record.delivery_count))
                    if len(got) == 8:
                        break

    # A connection that was lost would have had the record in hand delivered again.
    assert [(str(n).encode(), 1) for n in range(8)] == got


async def _trickle(admin, topic):
    for number in range(8):
        await anyio.to_thread.run_sync(admin.produce, topic, [str(number).encode()])
        await anyio.sleep(1.0)


async def test_password_that_changes_ends_the_consumer(secure_kafka):
    """At the next renewal; it does not try again and again."""
    tokens = ["good"]

    def token():
        return unsecured({"sub": NAME}, lifetime=3600 if tokens else -100)()

    topic = secure_kafka.admin.create_topic()
    with anyio.fail_after(30):
        async with ShareConsumer(
            topic,
            group_id=topic,
            bootstrap_servers=secure_kafka.at("SHORT"),
            security=Security.oauthbearer(token, tls=False),
        ) as consumer:
            await consumer.poll(timeout=2.0)
            tokens.clear()
            with pytest.raises(AuthenticationError, match="OAUTHBEARER"):
                async for _ in consumer:
                    pass


@pytest.fixture
def properties_file(tmp_path, authority):
    """As people write them: escapes, a line that goes on, things for others."""
    password = quoted(PASSWORD).replace("\\", "\\\\")
    file = tmp_path / "client.properties"
    file.write_text(
        f"""\
# for all programs
security.protocol = SASL_SSL
sasl.mechanism: SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username\u003d{quoted(NAME)} password={password};
ssl.truststore.type=JKS
ssl.truststore.location={authority.trust_store()}
ssl.truststore.password={STORE_PASSWORD}
ssl.keystore.location={authority.key_store(authority.issue("me@b", stem="mine"))}
ssl.keystore.password={STORE_PASSWORD}
ssl.key.password={STORE_PASSWORD}
group.id=others
"""
    )
    return file


async def test_file_that_kafkas_own_tool_takes(secure_kafka, properties_file):
    servers = secure_kafka.at("NAMEDTLS")
    listing = ("--bootstrap-server", servers, "--command-config", str(properties_file))
    command = secure_kafka.cluster.java_command(
        "org.apache.kafka.tools.consumer.group.ShareGroupCommand", "--list", *listing
    )

    done = await anyio.run_process(command, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    found = settings.load(
        bootstrap_servers=servers, command_config=properties_file, environ={}
    )

    assert () == found.warnings
    assert await asked(found.bootstrap_servers, found.security)
