"""TLS and SASL with a real Kafka: successful and rejected connections."""

import base64
import sys
import time
from types import SimpleNamespace

import anyio
import pytest

from sharecons import Producer, Security, ShareConsumer
from sharecons.config.validation import parse_bootstrap
from sharecons.errors import AuthenticationError, ConnectionFailedError
from sharecons.net.cluster import Cluster
from sharecons.properties import settings
from sharecons.properties.tokens import unsecured
from sharecons.protocol.group.messages import FindCoordinator
from tests.broker.java_tools import JavaTools
from tests.config.authority import PASSWORD as STORE_PASSWORD
from tests.config.conftest import NAME, PASSWORD, quote_jaas
from tests.guides import Guide
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.kafka,
    pytest.mark.slow("a Kafka with its own listeners starts"),
]

PASSWORD_MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def cluster(bootstrap, security):
    return Cluster(
        parse_bootstrap(bootstrap),
        client_id="me",
        software_version="1",
        security=security,
    )


async def list_brokers(bootstrap, security):
    """Send one request on a new connection."""
    connection = await cluster(bootstrap, security).connect_any(timeout=10)
    try:
        return await connection.send(FindCoordinator(group_id="security"), 20)
    finally:
        await connection.aclose()


def listeners(authority):
    """Return the listeners, and a `Security` for each."""
    tls = Security.tls(ca_file=authority.ca_file)
    mine = authority.issue("me@example.org", stem="me")
    for mechanism in PASSWORD_MECHANISMS:
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


async def test_every_listener_accepts_requests(secure_kafka, authority):
    for name, listener, security in listeners(authority):
        response = await list_brokers(secure_kafka.at(listener), security)

        assert response is not None, name


@pytest.mark.parametrize("way", ["SCRAM-SHA-512 over TLS", "PLAIN", "certificates"])
async def test_records_are_written_and_received(secure_kafka, authority, way):
    _, listener, security = next(
        found for found in listeners(authority) if found[0].startswith(way)
    )
    options = {"bootstrap_servers": secure_kafka.at(listener), "security": security}
    topic = secure_kafka.admin.create_topic()

    with anyio.fail_after(40):
        async with Producer(**options) as producer:
            await producer.send(topic, b"1")
        async with ShareConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **options
        ) as consumer:
            (record,) = await consumer.poll(timeout=30)

    assert b"1" == record.value


async def test_wrong_password_ends_the_start_of_a_producer(secure_kafka):
    security = Security.sasl("PLAIN", NAME, "wrong", tls=False)
    producer = Producer(bootstrap_servers=secure_kafka.at("NAMED"), security=security)

    with pytest.raises(AuthenticationError, match="PLAIN as 'alice'"):
        async with producer:
            pass


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
async def test_wrong_password_fails_without_a_retry(secure_kafka, mechanism):
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

    message = str(caught.value)
    assert secure_kafka.at("NAMED") in message
    assert f"{mechanism} as 'alice': Authentication failed" in message
    assert "wrong" not in message
    assert time.monotonic() - started < 3


async def test_rejected_token_is_an_error(secure_kafka):
    expired = unsecured({"sub": NAME}, lifetime=-100)

    with pytest.raises(AuthenticationError, match="OAUTHBEARER: .*invalid_token"):
        await list_brokers(
            secure_kafka.at("NAMED"), Security.oauthbearer(expired, tls=False)
        )


async def test_async_token_source_is_awaited(secure_kafka):
    async def token():
        await anyio.lowlevel.checkpoint()
        return unsecured({"sub": NAME})()

    response = await list_brokers(
        secure_kafka.at("NAMED"),
        Security.oauthbearer(token, extensions={"tenant": "x"}, tls=False),
    )

    assert response is not None


async def test_program_for_msk_consumes_with_the_tokens_of_its_signer(
    secure_kafka, authority, monkeypatch, capsys
):
    signer = SimpleNamespace(
        generate_auth_token=lambda region: (unsecured({"sub": NAME})(), 0)
    )
    package = SimpleNamespace(MSKAuthTokenProvider=signer)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", package)
    program = Guide("which-kafka.md").program("print_orders")
    secure_kafka.admin.create_topic(name="orders")
    servers = secure_kafka.at("NAMEDTLS")
    tls = Security.tls(ca_file=authority.ca_file)
    security = Security.oauthbearer(unsecured({"sub": NAME}), tls=tls)
    async with Producer(bootstrap_servers=servers, security=security) as producer:
        await producer.send("orders", b"tea")

    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(program, servers, tls)
            await until(lambda: "tea" in capsys.readouterr().out)
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("given", "listener", "error", "message"),
    [
        ("SASL", "PLAINTEXT", AuthenticationError, "connect without SASL"),
        ("nothing", "NAMED", ConnectionFailedError, "requires SASL.*=SASL_SSL"),
        ("nothing", "TLS", ConnectionFailedError, "a TLS"),
        ("TLS", "PLAINTEXT", ConnectionFailedError, "is a TLS listener"),
        (
            "TLS of a stranger",
            "TLS",
            AuthenticationError,
            "certificate was rejected.*ca_fi",
        ),
        ("TLS", "MUTUAL", AuthenticationError, "the client.s certificate.*cert_file"),
        (
            "a stranger's certificate",
            "MUTUAL",
            AuthenticationError,
            "rejected the client.s certificate",
        ),
    ],
)
async def test_security_that_a_listener_does_not_have_is_an_error(
    secure_kafka, authority, stranger, given, listener, error, message
):
    security = {
        "nothing": None,
        "SASL": Security.sasl("PLAIN", NAME, PASSWORD, tls=False),
        "TLS": Security.tls(ca_file=authority.ca_file),
        "TLS of a stranger": Security.tls(ca_file=stranger.ca_file),
        "a stranger's certificate": Security.tls(
            ca_file=authority.ca_file,
            cert_file=stranger.issue("me@example.org", stem="me"),
        ),
    }[given]
    plain = secure_kafka.cluster.bootstrap_servers
    servers = plain if listener == "PLAINTEXT" else secure_kafka.at(listener)

    with pytest.raises(error, match=message):
        await list_brokers(servers, security)


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
async def test_sasl_session_is_renewed_on_the_same_connection(secure_kafka, mechanism):
    """Without renewal, the broker closes the connection after 3 s."""
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
            await anyio.sleep(1.4)  # real time: Kafka's SASL session ages
            assert await connection.send(FindCoordinator(group_id="g"), 20)
        await anyio.sleep(3.5)  # real time: Kafka's SASL session ends
        assert await connection.send(FindCoordinator(group_id="g"), 20)
    finally:
        await connection.aclose()
    assert mechanism != "OAUTHBEARER" or len(given) == 3


async def test_consumer_continues_after_its_sasl_session(secure_kafka):
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

    # After a lost connection, the unacknowledged record would be delivered again.
    assert [(str(n).encode(), 1) for n in range(8)] == got


async def _trickle(admin, topic):
    for number in range(8):
        await anyio.to_thread.run_sync(admin.produce, topic, [str(number).encode()])
        await anyio.sleep(1.0)  # real time: Kafka's SASL session ends meanwhile


async def test_consumer_ends_when_tokens_stay_bad_after_its_session(secure_kafka):
    """Bad tokens are requested again for 10 s at least."""
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


@pytest.mark.parametrize("bad", ["raises", "expired"])
async def test_one_bad_token_at_renewal_keeps_the_locks(secure_kafka, bad, caplog):
    topic = secure_kafka.admin.create_topic()
    secure_kafka.admin.produce(topic, [b"1"])
    bad_calls = []

    def token():
        if not bad_calls:
            return unsecured({"sub": NAME})()
        if bad_calls.pop() == "raises":
            raise OSError("the vault is shut")
        return unsecured({"sub": NAME}, lifetime=-100)()

    with anyio.fail_after(40):
        async with ShareConsumer(
            topic,
            group_id=topic,
            bootstrap_servers=secure_kafka.at("SHORT"),
            auto_offset_reset="earliest",
            acknowledgement="explicit",
            security=Security.oauthbearer(token, tls=False),
        ) as consumer:
            (record,) = await consumer.poll(timeout=20)
            bad_calls.append(bad)
            # Kafka's SASL session of 3 s ends twice meanwhile.
            assert [] == await consumer.poll(timeout=7)
            record.accept()
            (result,) = await consumer.commit()

    assert result.error is None
    assert not bad_calls
    (warning,) = [r for r in caplog.records if r.levelname == "WARNING"]
    assert "authenticating again has failed; retrying" in warning.getMessage()


async def test_token_that_the_broker_rejects_at_renewal_does_not_end_the_consumer(
    secure_kafka,
):
    topic = secure_kafka.admin.create_topic()
    tokens = []

    def token():
        return tokens.pop() if tokens else unsecured({"sub": NAME})()

    with anyio.fail_after(40):
        async with ShareConsumer(
            topic,
            group_id=topic,
            bootstrap_servers=secure_kafka.at("SHORT"),
            auto_offset_reset="earliest",
            security=Security.oauthbearer(token, tls=False),
        ) as consumer:
            await consumer.poll(timeout=1)
            tokens.append("revoked")
            await consumer.poll(timeout=4)
            secure_kafka.admin.produce(topic, [b"1"])
            (record,) = await consumer.poll(timeout=20)

    assert not tokens
    assert b"1" == record.value


@pytest.fixture
def properties_file(tmp_path, authority):
    """Write a file with escapes, a continued line and properties of other clients."""
    password = quote_jaas(PASSWORD).replace("\\", "\\\\")
    file = tmp_path / "client.properties"
    file.write_text(
        f"""\
# for all programs
security.protocol = SASL_SSL
sasl.mechanism: SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username\u003d{quote_jaas(NAME)} password={password};
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


async def test_properties_file_of_kafkas_tools_is_accepted(
    secure_kafka, properties_file
):
    servers = secure_kafka.at("NAMEDTLS")
    listing = ("--list", "--command-config", str(properties_file))
    tool = JavaTools(servers)

    # It fails with a message, and with the exit code 0.
    await anyio.to_thread.run_sync(lambda: tool.run("kafka-share-groups", *listing))
    found = settings.load(
        bootstrap_servers=servers, command_config=properties_file, environ={}
    )

    assert () == found.warnings
    assert await list_brokers(found.bootstrap_servers, found.security)


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
async def test_rejected_password_is_in_no_log_line(secure_kafka, mechanism, caplog):
    """Neither is its base64, which is in the requests of PLAIN and SCRAM."""
    caplog.set_level("DEBUG")
    password = "wrong-pl4nted-8431"
    security = Security.sasl(mechanism, NAME, password, tls=False)

    with pytest.raises(AuthenticationError) as caught:
        await list_brokers(secure_kafka.at("NAMED"), security)

    text = f"{caplog.text} {[vars(each) for each in caplog.records]} {caught.value!r}"
    assert "pl4nted" not in text
    assert base64.b64encode(password.encode()).decode()[:8] not in text
