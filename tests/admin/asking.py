"""What the tests of administration do to a group."""

from contextlib import asynccontextmanager

from sharecons import ShareConsumer
from sharecons.protocol.codes import Code

__all__ = ["code_of", "held", "settled"]


def code_of(outcome):
    """The name of the broker's error; None if there is none."""
    return None if outcome.error is None else Code(outcome.error.code).name


@asynccontextmanager
async def held(kafka, group, topic, count):
    """A consumer that has acquired the first `count` records, and says nothing."""
    async with ShareConsumer(
        topic,
        group_id=group,
        bootstrap_servers=kafka.bootstrap_servers,
        acknowledgement="explicit",
        auto_offset_reset="earliest",
    ) as consumer:
        records = []
        while len(records) < count:
            records += await consumer.poll(timeout=20, max_records=count)
        yield consumer, records


async def settled(kafka, group, topic, count, say):
    """Have a group settle records as `say(record)` does, and leave."""
    async with held(kafka, group, topic, count) as (consumer, records):
        for record in records:
            say(record)
        await consumer.commit()
