"""Consumers of both types of groups, which record what they receive."""

from collections import Counter

import anyio
from aiokafka import AIOKafkaConsumer

from sharecons import ShareConsumer

PATIENCE = 60.0


async def read_classic(kafka, topic, group, count):
    """Read as many with a classic group, and commit what was read.

    Gives the records as (partition, offset), counted.
    """
    seen = Counter()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=kafka.bootstrap_servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
    )
    with anyio.fail_after(PATIENCE):
        async with consumer:
            while seen.total() < count:
                record = await consumer.getone()
                seen[record.partition, record.offset] += 1
            await consumer.commit()
    return seen


async def work(kafka, topic, group, decide, count):
    """Settle records of a share group as `decide` says; gives what became of each."""
    done = {}
    with anyio.fail_after(PATIENCE):
        async with ShareConsumer(
            topic,
            group_id=group,
            bootstrap_servers=kafka.bootstrap_servers,
            acknowledgement="explicit",
        ) as consumer:
            async for record in consumer:
                said = decide(record)
                if said is not None:
                    getattr(record, said)()
                    done.setdefault(said, Counter())[
                        record.partition, record.offset
                    ] += 1
                if sum(each.total() for each in done.values()) >= count:
                    break
            await consumer.commit()
    return done
