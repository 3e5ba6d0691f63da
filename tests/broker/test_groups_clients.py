"""Consumers of librdkafka and aiokafka in classic groups of the embedded broker."""

import uuid

import anyio
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from sharecons.testing import EmbeddedBroker
from tests.broker.clients import TIMEOUT, poll_all

pytestmark = pytest.mark.slow("clients poll over sockets in real time")

PARTITIONS = 4
STRATEGIES = ["range", "roundrobin", "cooperative-sticky"]


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(brokers=2) as broker:
        yield broker


@pytest.fixture
def topic(broker):
    name = f"topic-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def consumers(broker, group):
    """Create librdkafka consumers of one group, and close them."""
    made = []

    def consumer(topic, **config):
        new = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 100,
                "isolation.level": "read_committed",
                **{name.replace("_", "."): value for name, value in config.items()},
            }
        )
        new.subscribe([topic])
        made.append(new)
        return new

    yield consumer
    for each in made:
        each.close()


def values(records):
    return [record.value().decode() for record in records]


def sizes(*consumers):
    return sorted(len(consumer.assignment()) for consumer in consumers)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_consumers_share_partitions_and_one_takes_over(consumers, topic, strategy):
    config = {"partition_assignment_strategy": strategy}
    one = consumers(topic, **config)
    poll_all([one], lambda _: sizes(one) == [PARTITIONS])

    two = consumers(topic, **config)
    poll_all([one, two], lambda _: sizes(one, two) == [2, 2])
    taken = {tp.partition for each in (one, two) for tp in each.assignment()}
    two.close()
    poll_all([one], lambda _: sizes(one) == [PARTITIONS])

    assert set(range(PARTITIONS)) == taken


def test_consumer_starts_at_committed_offset(consumers, broker, topic):
    broker.produce(topic, [str(number) for number in range(10)], partition=0)
    first = consumers(topic)
    assert [str(n) for n in range(4)] == values(
        poll_all([first], lambda got: len(got) == 4)
    )
    first.commit(
        offsets=[TopicPartition(topic, 0, 4, metadata="four")], asynchronous=False
    )
    first.close()

    second = consumers(topic)

    assert [str(n) for n in range(4, 10)] == values(
        poll_all([second], lambda got: len(got) == 6)
    )
    (committed,) = second.committed([TopicPartition(topic, 0)], timeout=TIMEOUT)
    assert (4, "four") == (committed.offset, committed.metadata)


def test_static_member_returns_without_rebalance(consumers, broker, topic, group):
    one = consumers(topic, group_instance_id="one")
    poll_all([one], lambda _: sizes(one) == [PARTITIONS])
    two = consumers(topic, group_instance_id="two")
    poll_all([one, two], lambda _: sizes(one, two) == [2, 2])
    before = broker.cluster.groups.classic(group).generation_id
    had = two.assignment()

    two.close()
    again = consumers(topic, group_instance_id="two")
    poll_all([one, again], lambda _: sizes(one, again) == [2, 2])

    assert had == again.assignment()
    assert before == broker.cluster.groups.classic(group).generation_id


def test_group_follows_moved_coordinator(consumers, broker, topic, group):
    one = consumers(topic)
    poll_all([one], lambda _: sizes(one) == [PARTITIONS])

    broker.move_coordinator(group, 3 - broker.coordinator(group))
    two = consumers(topic)
    poll_all([one, two], lambda _: sizes(one, two) == [2, 2])


def test_waiting_join_follows_moved_coordinator(consumers, broker, topic, group):
    one = consumers(topic)
    poll_all([one], lambda _: sizes(one) == [PARTITIONS])
    two = consumers(topic)
    members = broker.cluster.groups.classic(group).members
    # Without polls the first member does not rejoin, and the second member waits.
    poll_all([two], lambda _: members.joining == 1)

    broker.move_coordinator(group, 3 - broker.coordinator(group))

    poll_all([one, two], lambda _: sizes(one, two) == [2, 2])


def test_transaction_commits_group_offsets(consumers, broker, topic, group):
    broker.produce(topic, ["a", "b"], partition=0)
    consumer = consumers(topic)
    poll_all([consumer], lambda got: len(got) == 2)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": uuid.uuid4().hex,
        }
    )
    producer.init_transactions(TIMEOUT)

    def transaction(offset):
        producer.begin_transaction()
        producer.produce(topic, "c", partition=1)
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, offset)],
            consumer.consumer_group_metadata(),
            TIMEOUT,
        )

    transaction(2)
    producer.commit_transaction(TIMEOUT)
    transaction(1)
    producer.abort_transaction(TIMEOUT)

    (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=TIMEOUT)
    assert 2 == committed.offset


def test_admin_client_describes_and_deletes_group(consumers, broker, topic, group):
    consumer = consumers(topic, client_id="client")
    poll_all([consumer], lambda _: sizes(consumer) == [PARTITIONS])
    consumer.commit(offsets=[TopicPartition(topic, 1, 7)], asynchronous=False)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    listed = admin.list_consumer_groups().result(TIMEOUT).valid
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT)

    assert "STABLE" in [each.state.name for each in listed if each.group_id == group]
    (member,) = described.members
    assert ("client", PARTITIONS) == (
        member.client_id,
        len(member.assignment.topic_partitions),
    )
    consumer.close()
    admin.delete_consumer_groups([group])[group].result(TIMEOUT)
    listed = admin.list_consumer_groups().result(TIMEOUT).valid
    assert group not in [each.group_id for each in listed]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_aiokafka_consumers_share_partitions_and_continue(
    broker, topic, group, anyio_backend
):
    aiokafka = pytest.importorskip("aiokafka")
    values = {str(number).encode() for number in range(20)}
    for partition in range(PARTITIONS):
        chunk = [v for v in values if int(v) % PARTITIONS == partition]
        broker.produce(topic, chunk, partition=partition)

    def consumer():
        return aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            rebalance_timeout_ms=5000,
        )

    with anyio.fail_after(TIMEOUT):
        async with consumer() as one, consumer() as two:
            while [len(one.assignment()), len(two.assignment())] != [2, 2]:
                await one.getmany(timeout_ms=50)
                await two.getmany(timeout_ms=50)
            await one.seek_to_beginning()
            await two.seek_to_beginning()
            received = {(await one.getone()).value for _ in range(10)}
            await one.commit()
        async with consumer() as three:
            received |= {(await three.getone()).value for _ in range(10)}

    assert values == received
