"""librdkafka's AdminClient, on a real Kafka and on the embedded one."""

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.clients import TIMEOUT, Clients, new_name, read
from tests.waiting import until_true

pytestmark = pytest.mark.slow("clients poll over sockets in real time")

ANONYMOUS = "User:ANONYMOUS"


@pytest.fixture
def clients(any_kafka):
    with Clients(any_kafka) as clients:
        yield clients


@pytest.fixture
def admin(clients):
    return AdminClient(clients.settings())


@pytest.fixture
def topic(any_kafka):
    """Return a topic with three partitions of three records each."""
    topic = any_kafka.admin.create_topic(3)
    for partition in range(3):
        any_kafka.admin.produce(topic, ["a", "b", "c"], partition)
    return topic


def result_of(futures):
    """Wait for the results of AdminClient: a future, or several."""
    if isinstance(futures, dict):
        return {key: future.result(TIMEOUT) for key, future in futures.items()}
    return futures.result(TIMEOUT)


def error_of(futures):
    """Return the error code of a failed request."""
    (future,) = futures.values()
    with pytest.raises(KafkaException) as rejected:
        future.result(TIMEOUT)
    return rejected.value.args[0].code()


def test_topics_are_created_extended_described_and_deleted(admin):
    name = new_name("topic")
    config = {"retention.ms": "1234"}
    result_of(admin.create_topics([NewTopic(name, 2, 1, config=config)]))
    until_true(
        lambda: name in admin.list_topics(timeout=TIMEOUT).topics, what="it is listed"
    )
    result_of(admin.create_partitions([NewPartitions(name, 5)]))

    def partitions():
        described = result_of(admin.describe_topics(TopicCollection([name])))
        return described[name].partitions

    found = until_true(lambda: len(p := partitions()) == 5 and p, what="it has grown")
    assert list(range(5)) == [partition.id for partition in found]
    for partition in found:
        assert 1 == len(partition.replicas) == len(partition.isr)
        assert partition.leader.id == partition.replicas[0].id

    result_of(admin.delete_topics([name]))
    listed = lambda: admin.list_topics(timeout=TIMEOUT).topics  # noqa: E731
    until_true(lambda: name not in listed(), what="it is gone")


def test_topic_settings_are_altered_incrementally(admin, topic):
    def configured():
        resource = ConfigResource(ResourceType.TOPIC, topic)
        (entries,) = result_of(admin.describe_configs([resource])).values()
        return entries

    before = configured()
    assert ("604800000", True) == value_of(before["retention.ms"])
    change = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry(
                "retention.ms", "1", incremental_operation=AlterConfigOpType.SET
            ),
            ConfigEntry(
                "cleanup.policy",
                "compact",
                incremental_operation=AlterConfigOpType.APPEND,
            ),
        ],
    )
    result_of(admin.incremental_alter_configs([change]))
    until_true(
        lambda: value_of(configured()["retention.ms"]) == ("1", False), what="it is set"
    )

    assert ("delete,compact", False) == value_of(configured()["cleanup.policy"])
    assert value_of(before["max.message.bytes"]) == value_of(
        configured()["max.message.bytes"]
    )


def value_of(entry):
    return entry.value, entry.is_default


@pytest.mark.filterwarnings("ignore:alter_configs:DeprecationWarning")
def test_topic_settings_are_replaced(admin, topic):
    def alter(**config):
        named = {name.replace("_", "."): value for name, value in config.items()}
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=named)
        result_of(admin.alter_configs([resource]))

    def own():
        resource = ConfigResource(ResourceType.TOPIC, topic)
        (entries,) = result_of(admin.describe_configs([resource])).values()
        return {name: e.value for name, e in entries.items() if not e.is_default}

    alter(retention_ms="1000", cleanup_policy="compact")
    expected = {"retention.ms": "1000", "cleanup.policy": "compact"}
    until_true(lambda: expected.items() <= own().items(), what="both are set")
    alter(retention_ms="2000")

    until_true(lambda: own().get("retention.ms") == "2000", what="one is set")
    assert "cleanup.policy" not in own()


def test_broker_settings_are_described(admin):
    node = str(admin.list_topics(timeout=TIMEOUT).controller_id)
    resource = ConfigResource(ResourceType.BROKER, node)
    (entries,) = result_of(admin.describe_configs([resource])).values()

    assert "1048588" == entries["message.max.bytes"].value
    assert node == entries["node.id"].value
    assert entries["node.id"].is_read_only


def test_the_cluster_is_described(admin, any_kafka):
    cluster = result_of(admin.describe_cluster(include_authorized_operations=True))
    metadata = admin.list_topics(timeout=TIMEOUT)

    (node,) = cluster.nodes
    assert any_kafka.bootstrap_servers == f"{node.host}:{node.port}"
    assert cluster.cluster_id == metadata.cluster_id
    assert [node.id] == list(metadata.brokers)
    assert cluster.controller.id == node.id
    assert AclOperation.ALTER in cluster.authorized_operations
    assert AclOperation.CREATE in cluster.authorized_operations


def test_offsets_are_listed_for_each_offset_spec(admin, topic):
    def listed(spec):
        where = {TopicPartition(topic, 1): spec}
        level = IsolationLevel.READ_COMMITTED
        (found,) = result_of(admin.list_offsets(where, isolation_level=level)).values()
        return found.offset

    assert 0 == listed(OffsetSpec.earliest())
    assert 3 == listed(OffsetSpec.latest())
    assert listed(OffsetSpec.max_timestamp()) in range(3)
    assert 0 == listed(OffsetSpec.for_timestamp(1))
    assert -1 == listed(OffsetSpec.for_timestamp(2_000_000_000_000))


def test_records_are_deleted_up_to_an_offset(admin, clients, topic):
    consumer = clients.consumer()
    deleted = result_of(admin.delete_records([TopicPartition(topic, 1, 2)]))

    (found,) = deleted.values()
    assert 2 == found.low_watermark
    where = TopicPartition(topic, 1)
    assert (2, 3) == consumer.get_watermark_offsets(where, TIMEOUT)
    consumer.assign([TopicPartition(topic, 1, 0)])
    (record,) = read(consumer, 1)
    assert (2, b"c") == (record.offset(), record.value())
    clients.complaints.clear()  # librdkafka logs the redirect
    beyond = [TopicPartition(topic, 1, 9)]
    assert KafkaError.OFFSET_OUT_OF_RANGE == error_of(admin.delete_records(beyond))


# Groups.


def test_a_group_is_listed_described_and_deleted(admin, clients, topic):
    group = new_name("group")
    consumer = clients.consumer(group, client_id="client")
    consumer.subscribe([topic])
    read(consumer, 9)
    consumer.commit(asynchronous=False)

    listed = result_of(admin.list_consumer_groups(states={ConsumerGroupState.STABLE}))
    (found,) = [each for each in listed.valid if each.group_id == group]
    assert [] == listed.errors
    assert (False, ConsumerGroupType.CLASSIC) == (
        found.is_simple_consumer_group,
        found.type,
    )
    described = result_of(admin.describe_consumer_groups([group]))[group]
    assert ("range", ConsumerGroupState.STABLE) == (
        described.partition_assignor,
        described.state,
    )
    (member,) = described.members
    assert ("client", "/127.0.0.1") == (
        member.client_id,
        member.host.replace("[", ""),
    )
    where = [(p.topic, p.partition) for p in member.assignment.topic_partitions]
    assert [(topic, partition) for partition in range(3)] == sorted(where)

    assert KafkaError.NON_EMPTY_GROUP == error_of(admin.delete_consumer_groups([group]))
    consumer.close()
    result_of(admin.delete_consumer_groups([group]))
    assert KafkaError.GROUP_ID_NOT_FOUND == error_of(
        admin.delete_consumer_groups([group])
    )


def test_group_offsets_are_listed_altered_and_deleted(admin, clients, topic):
    group = new_name("group")
    consumer = clients.consumer(group)
    consumer.subscribe([topic])
    read(consumer, 9)
    consumer.commit(asynchronous=False)

    def offsets():
        groups = [ConsumerGroupTopicPartitions(group)]
        (response,) = result_of(admin.list_consumer_group_offsets(groups)).values()
        return {each.partition: each.offset for each in response.topic_partitions}

    assert {0: 3, 1: 3, 2: 3} == offsets()
    altered = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1, 2)])]
    (rejected,) = result_of(admin.alter_consumer_group_offsets(altered)).values()
    (partition,) = rejected.topic_partitions
    assert KafkaError.UNKNOWN_MEMBER_ID == partition.error.code()
    consumer.close()
    result_of(admin.alter_consumer_group_offsets(altered))
    assert {0: 3, 1: 2, 2: 3} == offsets()

    again = clients.consumer(group)
    again.subscribe([topic])
    (record,) = read(again, 1)
    assert (1, b"c") == (record.partition(), record.value())


def test_unknown_groups_are_described_and_deleted_with_errors(admin):
    group = new_name("group")
    described = admin.describe_consumer_groups([group])[group]
    groups = [ConsumerGroupTopicPartitions(group)]
    (offsets,) = result_of(admin.list_consumer_group_offsets(groups)).values()

    assert ConsumerGroupState.DEAD == described.result(TIMEOUT).state
    assert [] == offsets.topic_partitions


# ACLs.


def test_acls_are_created_enforced_described_and_deleted(admin, clients, topic):
    group = new_name("group")
    rules = [
        AclBinding(
            ResourceType.TOPIC,
            topic[:-2],
            ResourcePatternType.PREFIXED,
            ANONYMOUS,
            "*",
            AclOperation.WRITE,
            AclPermissionType.DENY,
        ),
        AclBinding(
            ResourceType.GROUP,
            group,
            ResourcePatternType.LITERAL,
            ANONYMOUS,
            "*",
            AclOperation.READ,
            AclPermissionType.DENY,
        ),
    ]
    of_topic = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.MATCH,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        ANONYMOUS,
        None,
        AclOperation.ANY,
        AclPermissionType.DENY,
    )
    result_of(admin.create_acls(rules))
    until_true(
        lambda: len(result_of(admin.describe_acls(everything))) == 2,
        what="the rules exist",
    )

    assert [rules[0]] == result_of(admin.describe_acls(of_topic))
    errors = []
    producer = clients.producer()
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT)
    assert [KafkaError.TOPIC_AUTHORIZATION_FAILED] == [e.code() for e in errors]
    consumer = clients.consumer(group)
    consumer.subscribe([topic])
    message = until_true(lambda: consumer.poll(0.1), what="an error")
    assert KafkaError.GROUP_AUTHORIZATION_FAILED == message.error().code()
    clients.complaints.clear()  # librdkafka logs the error

    (deleted,) = result_of(admin.delete_acls([everything])).values()
    assert sorted(map(str, rules)) == sorted(map(str, deleted))
    until_true(
        lambda: not result_of(admin.describe_acls(everything)), what="they are gone"
    )
    read(consumer, 9)
