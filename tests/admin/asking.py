"""Helpers for tests of the admin client: groups with acquired or settled records."""

from contextlib import asynccontextmanager

from sharecons import ShareConsumer
from sharecons.protocol.codes import Code

__all__ = ["code_of", "held", "settled"]


def code_of(outcome):
    """The name of the broker's error; None if there is none."""
    return None if outcome.error is None else Code(outcome.error.code).name


@asynccontextmanager
async def held(kafka, group, topic, count):
    """A consumer that has acquired the first `count` records, without acknowledging."""
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
    """Settle records of a group by `say(record)`, and leave the group."""
    async with held(kafka, group, topic, count) as (consumer, records):
        for record in records:
            say(record)
        await consumer.commit()
