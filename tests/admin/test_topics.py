"""Creating and deleting topics, on both Kafkas."""

import uuid

import anyio
import pytest
from confluent_kafka import admin as confluent

from sharecons import ShareGroupAdmin
from sharecons.admin import NewTopic
from sharecons.errors import (
    AuthorizationError,
    ConfigurationError,
    ConnectionFailedError,
    RequestTimedOutError,
)
from sharecons.testing import EmbeddedBroker
from tests.admin.acquired import code_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def name() -> str:
    return f"topic-{uuid.uuid4().hex[:12]}"


async def described(admin, name):
    """Return a topic once the broker knows it."""
    with anyio.fail_after(10):
        while (outcome := (await admin.describe_topics(name))[name]).error:
            await anyio.sleep(0.05)  # real time: brokers learn of it later
    return outcome.value


async def test_created_topic_has_its_partitions_and_configs(admin, name):
    configs = {"retention.ms": 60_000, "cleanup.policy": "compact,delete"}
    topic = NewTopic(name, partitions=3, replication_factor=1, configs=configs)

    created = (await admin.create_topics(topic))[name].value

    found = await described(admin, name)
    values = (await admin.describe_topic_configs(name))[name].value
    assert (3, 1) == (created.partitions, created.replication_factor)
    assert created.topic_id == found.topic_id
    assert [0, 1, 2] == sorted(found.partitions)
    assert "60000" == values["retention.ms"].value
    assert "compact,delete" == values["cleanup.policy"].value


async def test_topic_without_numbers_has_the_brokers_defaults(admin, name):
    created = (await admin.create_topics(NewTopic(name)))[name].value

    found = await described(admin, name)
    assert created.partitions == len(found.partitions)
    assert 1 == created.replication_factor


async def test_validate_only_creates_nothing(admin, name):
    results = await admin.create_topics(NewTopic(name), validate_only=True)

    assert results.ok
    described = await admin.describe_topics(name)
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(described[name])


async def test_each_topic_has_its_own_error_with_the_brokers_message(
    admin, kafka, name
):
    existing = kafka.admin.create_topic()

    results = await admin.create_topics(
        NewTopic(name),
        NewTopic(existing),
        NewTopic(f"{name}-replicas", replication_factor=3),
        NewTopic(f"{name}-config", configs={"retention.ms": "soon"}),
        NewTopic(f"{name}-unknown", configs={"no.such.config": True}),
    )

    assert [
        None,
        "TOPIC_ALREADY_EXISTS",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_CONFIG",
        "INVALID_CONFIG",
    ] == [code_of(outcome) if outcome.error else None for outcome in results.values()]
    texts = [str(error) for error in results.errors.values()]
    assert f"cannot create topic {existing!r}: TOPIC_ALREADY_EXISTS" in texts[0]
    assert "already exists" in texts[0]
    assert "replicate the partition 3 time" in texts[1]
    assert "retention.ms" in texts[2]
    assert "no.such.config" in texts[3]


async def test_deleted_topic_is_gone_and_another_has_its_own_error(admin, kafka):
    topic = kafka.admin.create_topic()

    results = await admin.delete_topics(topic, "no-such-topic")

    assert results[topic].ok
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(results["no-such-topic"])
    with anyio.fail_after(10):
        while not (await admin.describe_topics(topic))[topic].error:
            await anyio.sleep(0.05)  # real time: brokers learn of it later


async def test_no_topics_are_an_empty_result(admin):
    assert {} == dict(await admin.create_topics())
    assert {} == dict(await admin.delete_topics())


async def test_missing_rights_are_authorization_errors(admin, kafka, name):
    kafka.admin.deny_topic(name)
    with kafka.admin.denied_cluster(confluent.AclOperation.CREATE, name):
        created = await admin.create_topics(NewTopic(name))
    with kafka.admin.denied_cluster(confluent.AclOperation.DELETE, name):
        deleted = await admin.delete_topics(name)
    kafka.admin.allow_topic(name)

    for outcome in (created[name], deleted[name]):
        assert isinstance(outcome.error, AuthorizationError)
        assert "TOPIC_AUTHORIZATION_FAILED" == code_of(outcome)
        assert repr(name) in str(outcome.error)


# On the embedded broker.


@pytest.mark.parametrize("api", ["CreateTopics", "DeleteTopics"])
async def test_error_that_passes_is_repeated(api, name):
    async with EmbeddedBroker(listen=False) as broker:
        broker.faults.on(api, times=2).refuse("NOT_CONTROLLER")
        async with admin_of(broker) as admin:
            await admin.create_topics(NewTopic(name))
            results = await admin.delete_topics(name)

    assert results.ok


async def test_controller_that_does_not_respond_is_a_timeout(name):
    async with EmbeddedBroker(listen=False) as broker:
        broker.faults.on("CreateTopics", times=None).refuse("REQUEST_TIMED_OUT")
        async with admin_of(broker, timeout=0.2) as admin:
            results = await admin.create_topics(NewTopic(name))

    error = results[name].error
    assert isinstance(error, RequestTimedOutError)
    assert f"cannot create topic {name!r} within 0.2 s" in str(error)
    assert "REQUEST_TIMED_OUT" in str(error)


async def test_lost_response_of_a_creation_is_reported_as_existing(name):
    async with EmbeddedBroker(listen=False) as broker:
        broker.faults.on("CreateTopics").cut(after=True)
        async with admin_of(broker) as admin:
            results = await admin.create_topics(NewTopic(name))

    assert "TOPIC_ALREADY_EXISTS" == code_of(results[name])


def admin_of(broker: EmbeddedBroker, **options) -> ShareGroupAdmin:
    return ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        **{"timeout": 10, **options},
    )


async def test_unreachable_brokers_are_an_error_of_the_call():
    async with ShareGroupAdmin(
        bootstrap_servers="localhost:1", connect_timeout=0
    ) as admin:
        with pytest.raises(ConnectionFailedError):
            await admin.create_topics(NewTopic("orders"))
        with pytest.raises(ConnectionFailedError):
            await admin.delete_topics("orders")


@pytest.mark.parametrize(
    ("topics", "text"),
    [
        (["orders"], "topics must be NewTopic, not 'orders'"),
        ([NewTopic("a b")], "name: topic name 'a b' can contain only"),
        ([NewTopic("t"), NewTopic("t")], "topics contain 't' twice"),
        ([NewTopic("t", partitions=0)], "partitions must be between 1 and"),
        ([NewTopic("t", replication_factor=0)], "replication_factor must be between 1"),
        ([NewTopic("t", configs=[])], "configs must be a mapping"),
        ([NewTopic("t", configs={"a": None})], "config 'a' must be a str, an int or a"),
        ([NewTopic("t", configs={1: "a"})], "config name must be a str"),
    ],
)
async def test_invalid_topic_is_a_sentence(topics, text):
    with pytest.raises(ConfigurationError, match=text):
        await ShareGroupAdmin(bootstrap_servers="localhost:1").create_topics(*topics)


async def test_invalid_names_of_deletions_are_a_sentence():
    admin = ShareGroupAdmin(bootstrap_servers="localhost:1")
    with pytest.raises(ConfigurationError, match="topics: topic name 'a b'"):
        await admin.delete_topics("a b")
    with pytest.raises(ConfigurationError, match="validate_only must be True or"):
        await admin.create_topics(NewTopic("t"), validate_only="yes")
