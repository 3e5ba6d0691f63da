"""The producer on three brokers: leaders that move, and a broker that is killed."""

from collections import Counter
from collections.abc import Callable

import anyio
import pytest
from anyio import to_thread

from sharecons import Error, Producer, ProducerRecord
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.queue import Queue, take

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("brokers are killed and restarted"),
    pytest.mark.timeout(240),
]

PARTITIONS = 3


async def produce_during(queue: Queue, *events: Callable[[], object]) -> list[bytes]:
    """Produce while events happen one by one; return the values that were confirmed."""
    written: list[bytes] = []
    async with Producer(
        bootstrap_servers=queue.admin.bootstrap_servers, delivery_timeout=60
    ) as producer:

        async def produce() -> None:
            while True:
                values = [b"%d" % (len(written) + index) for index in range(50)]
                outcomes = await producer.send_many(
                    ProducerRecord(queue.topic, value, partition=index % PARTITIONS)
                    for index, value in enumerate(values)
                )
                assert [] == [each for each in outcomes if isinstance(each, Error)]
                written.extend(values)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(produce)
            for event in events:
                await to_thread.run_sync(event)
                before = len(written)
                with anyio.fail_after(60):
                    while len(written) < before + 100:
                        await anyio.sleep(0.01)  # real time: brokers of other processes
            tasks.cancel_scope.cancel()
        end = await producer.send(queue.topic, b"end", partition=0)
    assert end.offset > 0
    return [*written, b"end"]


async def check_written_once(queue: Queue, written: list[bytes]) -> None:
    async with queue.consumer() as consumer:
        # The records of the cancelled call can be written, before the last one.
        records = await take(aiter(consumer), len(written) + 50, within=10)
    counts = Counter(record.value for record in records)

    assert set() == set(written) - set(counts)
    assert {1} == set(counts.values())


async def test_records_are_written_once_while_leaders_move(
    admin3: Admin, kafka3: Kafka
) -> None:
    queue = Queue(admin3, partitions=PARTITIONS, replication=3)

    def move_all(to: int) -> None:
        for partition in range(PARTITIONS):
            admin3.move_leader(queue.topic, partition, to)

    nodes = sorted(kafka3.cluster.brokers)
    written = await produce_during(
        queue, *[lambda to=to: move_all(to) for to in [*nodes, *nodes]]
    )

    await check_written_once(queue, written)


async def test_records_are_written_once_although_a_leader_is_killed(
    admin3: Admin, kafka3: Kafka
) -> None:
    queue = Queue(admin3, partitions=PARTITIONS, replication=3)
    killed = admin3.leader(queue.topic, 0)

    written = await produce_during(
        queue,
        lambda: kafka3.cluster.kill(killed),
        lambda: kafka3.cluster.start_broker(killed),
    )

    await check_written_once(queue, written)
