"""Consumers of both types of groups, which count the records that they receive."""

from collections import Counter

import anyio
from aiokafka import AIOKafkaConsumer

from sharecons import ShareConsumer

TIMEOUT = 60.0


async def read_classic(kafka, topic, group, count):
    """Read a number of records with a classic group, and commit their offsets.

    Returns how often each (partition, offset) was read.
    """
    received = Counter()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=kafka.bootstrap_servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
    )
    with anyio.fail_after(TIMEOUT):
        async with consumer:
            while received.total() < count:
                record = await consumer.getone()
                received[record.partition, record.offset] += 1
            await consumer.commit()
    return received


async def acknowledge(kafka, topic, group, choose, count):
    """Acknowledge a number of records with a share group.

    Args:
        choose: returns the method of a record to call ("accept", "release" or
            "reject"), or None to leave it unacknowledged.

    Returns, for each method, how often it was called for each (partition, offset).
    """
    acknowledged = {}
    with anyio.fail_after(TIMEOUT):
        async with ShareConsumer(
            topic,
            group_id=group,
            bootstrap_servers=kafka.bootstrap_servers,
            acknowledgement="explicit",
        ) as consumer:
            async for record in consumer:
                method = choose(record)
                if method is not None:
                    getattr(record, method)()
                    offsets = acknowledged.setdefault(method, Counter())
                    offsets[record.partition, record.offset] += 1
                if sum(each.total() for each in acknowledged.values()) >= count:
                    break
            await consumer.commit()
    return acknowledged
