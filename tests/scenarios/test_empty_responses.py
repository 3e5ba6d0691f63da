"""Empty fetch responses that brokers return immediately and repeatedly."""

import anyio
import pytest

from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.queue import Queue, take

pytestmark = pytest.mark.anyio


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
    admin = real_kafka.admin
    queue = Queue(admin)
    for _ in range(10):
        queue.produce([b"record"] * 10)
    consumer = queue.consumer(acknowledgement="explicit", max_records=10)
    seen: set[int] = set()
    async with consumer:
        held = []
        while len(held) < 10:
            held += await consumer.poll(timeout=10, max_records=10 - len(held))
        admin.delete_records(queue.topic, before=55)
        await anyio.sleep(1)  # real time: a slow handler, whose next fetches are small
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


async def test_aborted_transactions_are_skipped_with_few_fetches(
    admin: Admin,
) -> None:
    """The number of aborted records that a fetch skips is its number of records."""
    queue = Queue(admin, **{"share.isolation.level": "read_committed"})
    await anyio.to_thread.run_sync(abort_transactions, admin, queue.topic, 10, 500)
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 1, within=20)
        fetches = consumer.metrics()["fetch-total"]

    assert [b"committed"] == [record.value for record in records]
    assert fetches < 60


def abort_transactions(
    admin: Admin, topic: str, transactions: int, records: int
) -> None:
    producer = admin.producer(transactional_id=topic, linger_ms=0)
    producer.init_transactions(10)
    for _ in range(transactions):
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(topic, b"aborted")
        producer.flush(10)
        producer.abort_transaction(10)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.commit_transaction(10)
