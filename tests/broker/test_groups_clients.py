"""Consumers of librdkafka in classic groups of the embedded broker.

The tests of `test_clients_*.py` on both brokers have what needs no control of it.
"""

import uuid

import pytest
from confluent_kafka import Consumer

from sharecons.testing import EmbeddedBroker
from tests.broker.clients import poll_all

pytestmark = pytest.mark.slow("clients poll over sockets in real time")

PARTITIONS = 4


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


def sizes(*consumers):
    return sorted(len(consumer.assignment()) for consumer in consumers)


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
