"""Damaged records in front of others, on both brokers."""

import anyio
import pytest

from sharecons.errors import CorruptRecordsError
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.damage import corrupt_batch
from tests.scenarios.queue import Queue

pytestmark = pytest.mark.anyio

DAMAGED = 5
INTACT = 1000


async def test_damaged_records_do_not_delay_those_behind_them(
    admin: Admin, kafka: Kafka
) -> None:
    queue = Queue(admin)
    for number in range(DAMAGED):
        queue.produce([b"bad-%d-bad" % number])
    queue.produce([b"good"] * INTACT)
    for number in range(DAMAGED):
        old = b"bad-%d-bad" % number
        corrupt_batch(kafka, queue.topic, number, old, b"X" * len(old))
    count = 0
    errors: list[CorruptRecordsError] = []

    async with queue.consumer() as consumer:
        with anyio.fail_after(10):  # real time: it took 37 s
            while count < INTACT:
                try:
                    async for _ in consumer:
                        count += 1
                        if count == INTACT:
                            break
                except CorruptRecordsError as error:
                    errors.append(error)

    assert {error.first_offset for error in errors} == set(range(DAMAGED))
    assert len(errors) == 2 * DAMAGED
