"""Reading state while Kafka 4.4 writes dead letters (KIP-1191): ARCHIVING."""

from collections import Counter

import anyio
import pytest

from sharecons import ShareConsumer, TopicPartition
from sharecons.admin import DeliveryState
from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import VERSION

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("a broker writes dead letters before it archives"),
]

COUNT = 1500
AVAILABLE, _, ARCHIVING, ARCHIVED = DeliveryState
ENABLE = "errors.deadletterqueue.group.enable"
NAME = "errors.deadletterqueue.topic.name"


@pytest.fixture(
    scope="session",
    params=[
        "embedded_kafka",
        pytest.param(
            "real_kafka",
            marks=[
                pytest.mark.kafka,
                pytest.mark.skipif(VERSION < "4.4", reason="since Kafka 4.4"),
            ],
        ),
    ],
)
def kafka(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def topic(kafka, group):
    """Return a topic of two partitions; the group has a topic for dead letters."""
    letters = kafka.admin.create_topic(2, f"dlq.{group}", config={ENABLE: "true"})
    kafka.admin.set_group_config(group, {NAME: letters})
    topic = kafka.admin.create_topic(2)
    for partition in range(2):
        kafka.admin.produce(topic, ["x"] * COUNT, partition=partition)
    return topic


async def reject_all(kafka, group, topic):
    """Reject each record on arrival."""
    async with ShareConsumer(
        topic,
        group_id=group,
        bootstrap_servers=kafka.bootstrap_servers,
        acknowledgement="explicit",
        auto_offset_reset="earliest",
    ) as consumer:
        count = 0
        while count < 2 * COUNT:
            for record in await consumer.poll(timeout=20, max_records=50):
                record.reject()
                count += 1
            await consumer.commit()


def is_archived(batches):
    return {ARCHIVED} == {batch.state for batch in batches}


async def test_state_is_read_while_records_are_rejected(admin, kafka, group, topic):
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    states = Counter()
    reads = 0

    async def read():
        nonlocal reads
        read = await admin.read_state(group, partitions)
        reads += 1
        assert [None, None] == [read[partition].error for partition in partitions]
        batches = [read[partition].value.batches for partition in partitions]
        states.update(batch.state for each in batches for batch in each)
        return [each[-1].last_offset for each in batches if is_archived(each)]

    async def read_until_cancelled():
        while True:
            await read()

    await admin.alter_group_configs(group, {"share.auto.offset.reset": "earliest"})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_until_cancelled)
        await reject_all(kafka, group, topic)
        with anyio.fail_after(30):
            while await read() != [COUNT - 1, COUNT - 1]:
                pass
        tasks.cancel_scope.cancel()

    assert reads > 5
    # The embedded broker writes a dead letter when it archives its record. On Kafka
    # one in twelve reads returns records that are archiving.
    is_real = kafka.started is None or isinstance(kafka.started, KafkaCluster)
    expected = {ARCHIVING, ARCHIVED} if is_real else {ARCHIVED}
    assert expected == set(states) - {AVAILABLE}, f"{reads} reads, batches: {states}"
