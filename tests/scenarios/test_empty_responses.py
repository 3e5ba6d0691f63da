"""Empty fetch responses that a real broker returns immediately and repeatedly."""

import anyio
import pytest
from confluent_kafka import TopicPartition

from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.queue import Queue, take

pytestmark = pytest.mark.anyio


def delete_records(admin: Admin, topic: str, before: int) -> None:
    deleted = admin._client.delete_records([TopicPartition(topic, 0, before)])
    for each in deleted.values():
        each.result(10)


@pytest.mark.kafka
async def test_records_after_deleted_range_arrive_with_few_fetches(
    real_kafka: Kafka,
) -> None:
    """The log start offset, 55, moves beyond locked records.

    A small fetch then acquires only 50 and 51, of a batch of ten, and the broker
    (4.3.0, 4.4.0) reads at 52 forever, although the log starts at 55. Each fetch logs
    an ERROR at the broker. Other sessions and members get the same response; the
    broker reloads the group's state only after its last member has left.
    """
    queue = Queue(real_kafka.admin)
    for _ in range(10):
        queue.produce([b"record"] * 10)
    consumer = queue.consumer(acknowledgement="explicit", max_records=10)
    seen: set[int] = set()
    async with consumer:
        held = []
        while len(held) < 10:
            held += await consumer.poll(timeout=10, max_records=10 - len(held))
        delete_records(queue.admin, queue.topic, 55)
        await anyio.sleep(1)  # so that the next fetches are small
        for record in held:
            record.accept()
        before = consumer.metrics()["fetch-total"]
        with anyio.fail_after(8):
            while not seen.issuperset(range(55, 100)):
                for record in await consumer.poll(timeout=0.5):
                    record.accept()
                    seen.add(record.offset)
        fetches = consumer.metrics()["fetch-total"] - before

    assert fetches < 50


@pytest.mark.slow
async def test_aborted_transactions_are_skipped_with_few_fetches(
    admin: Admin,
) -> None:
    """A broker skips as many aborted records per fetch as the fetch requests."""
    queue = Queue(admin, **{"share.isolation.level": "read_committed"})
    await anyio.to_thread.run_sync(abort_transactions, queue, 10, 500)
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 1, within=20)
        fetches = consumer.metrics()["fetch-total"]

    assert [b"committed"] == [record.value for record in records]
    assert fetches < 60


def abort_transactions(queue: Queue, transactions: int, records: int) -> None:
    producer = queue.admin.producer(transactional_id=queue.topic, linger_ms=0)
    producer.init_transactions(10)
    for _ in range(transactions):
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(queue.topic, b"aborted")
        producer.flush(10)
        producer.abort_transaction(10)
    producer.begin_transaction()
    producer.produce(queue.topic, b"committed")
    producer.commit_transaction(10)


async def test_idle_consumers_receive_record_immediately(admin: Admin) -> None:
    queue = Queue(admin)
    async with queue.consumer() as one, queue.consumer() as other:
        async with anyio.create_task_group() as tasks:
            delays: list[float] = []

            async def read(consumer) -> None:
                async for record in consumer:
                    delay = anyio.current_time() - float(record.value)
                    delays.append(delay)

            tasks.start_soon(read, one)
            tasks.start_soon(read, other)
            await anyio.sleep(2.5)
            for number in range(10):
                queue.produce([str(anyio.current_time()).encode()])
                await anyio.sleep(0.1 * number)
            tasks.cancel_scope.cancel()

    assert 10 == len(delays)
    assert sorted(delays)[8] < 0.2
