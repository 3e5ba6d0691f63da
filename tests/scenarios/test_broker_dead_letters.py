"""Dead letters of Kafka 4.4, and the rules that redrives rely on, on both brokers."""

import random

import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.copies.dead_letter_headers import RedriveMark, redrive_headers
from sharecons.dead_letters import DeadLetterRecord, DeadLetters, SourceStatus
from sharecons.errors import BrokerError
from sharecons.producer.idempotent import OutgoingRecord
from sharecons.protocol.codes import Code
from sharecons.protocol.produce.messages import ProducerIdentity
from sharecons.records.encoder import NewRecord
from tests.dead_letters.letters import records_of
from tests.kafka_plugin import Admin, EmbeddedCluster, Kafka
from tests.producer.running import producing
from tests.scenarios.queue import Queue, take
from tests.scenarios.repeating import repeat

pytestmark = pytest.mark.anyio

NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
ENABLE = "errors.deadletterqueue.group.enable"
TRACE = (("trace", b"1"),)


async def reject(queue: Queue, count: int) -> None:
    async with queue.consumer(acknowledgement="explicit") as consumer:
        for record in await take(aiter(consumer), count):
            record.reject()
        await consumer.commit()


@pytest.mark.parametrize("copy", ["false", "true"])
async def test_dead_letters_of_the_broker_are_read_and_redriven(
    kafka: Kafka, copy: str
) -> None:
    if kafka.version < "4.4" and not isinstance(kafka.started, EmbeddedCluster):
        pytest.skip("requires Kafka 4.4")
    admin = kafka.admin
    letters = admin.create_topic(
        1, f"dlq.{random.getrandbits(48):x}", config={ENABLE: "true"}
    )
    queue = Queue(admin, **{NAME: letters, COPY: copy})
    queue.produce([b"v0", b"v1"], keys=[b"k0", b"k1"], headers=TRACE)
    await reject(queue, 2)

    async with DeadLetters(
        letters, bootstrap_servers=admin.bootstrap_servers
    ) as dead_letters:

        async def read() -> list[DeadLetterRecord]:
            return [each async for each in dead_letters.read()]

        found = await repeat(read, until=lambda letters: len(letters) == 2)
        summary = await dead_letters.redrive()

    assert [(b"k0", b"v0", TRACE), (b"k1", b"v1", TRACE)] == [
        (each.key, each.value, each.headers) for each in found
    ]
    assert {SourceStatus.FETCHED} == {each.status for each in found}
    assert [(queue.topic, n, queue.group) for n in range(2)] == [
        (each.origin.topic, each.origin.offset, each.origin.group)
        for each in found
        if each.origin
    ]
    assert 2 == summary.redriven
    async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
        (*_, last) = await records_of(client, queue.topic)
    mark = RedriveMark(letters, letters, 0, 1)
    assert found[1].origin is not None
    own = redrive_headers(mark, 1, found[1].origin, found[1].timestamp)
    assert (b"v1", (*TRACE, *own)) == (last.value, last.headers)


async def write(
    admin: Admin, topic: str, identity: ProducerIdentity, first: int, *values: bytes
) -> int:
    """Write one batch; return the error code of the response."""
    async with producing(
        admin.bootstrap_servers,
        identity=identity,
        sequences={TopicPartition(topic, 0): first},
    ) as producer:
        records = [
            NewRecord(key=None, value=value, timestamp=1_700_000_000_000)
            for value in values
        ]
        outcomes = await producer.send_each(
            [OutgoingRecord(topic, record, 0) for record in records]
        )
    errors = [each for each in outcomes if isinstance(each, BrokerError)]
    return errors[0].code if errors else Code.NONE


async def test_leader_appends_batches_of_only_one_of_two_processes(
    admin: Admin,
) -> None:
    """An interrupted redrive and its successor use one producer id."""
    topic = admin.create_topic()
    identity = ProducerIdentity(random.getrandbits(48), 0)
    codes = [
        await write(admin, topic, identity, 0, b"1", b"2", b"3"),
        await write(admin, topic, identity, 0, b"1", b"2", b"3"),
        await write(admin, topic, identity, 0, b"x", b"x"),
        await write(admin, topic, identity, 1, b"x", b"x"),
        await write(admin, topic, identity, 7, b"x"),
        await write(admin, topic, identity, 3, b"4"),
    ]

    out_of_order = Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [0, 0, *[out_of_order] * 3, 0] == codes

    async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
        values = [record.value for record in await records_of(client, topic)]
    assert [b"1", b"2", b"3", b"4"] == values


async def test_unknown_producer_starts_with_any_sequence_number(
    admin: Admin,
) -> None:
    """The broker removes the state of an old redrive's producer id after some time."""
    topic = admin.create_topic()
    identity = ProducerIdentity(random.getrandbits(48), 0)

    assert Code.NONE == await write(admin, topic, identity, 42, b"1")

    async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
        values = [record.value for record in await records_of(client, topic)]
    assert [b"1"] == values
