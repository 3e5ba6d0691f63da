"""Migration of a classic group to a share group, and back."""

import pytest

from sharecons import ShareGroupAdmin
from sharecons._record import TopicPartition
from sharecons.migration import Direction, execute, plan
from tests.migration.groups import acknowledge, read_classic

pytestmark = [pytest.mark.anyio, pytest.mark.slow("clients join two kinds of groups")]

PARTITIONS = 4
RECORDS = 10_000


@pytest.fixture
def anyio_backend():
    return "asyncio"  # aiokafka needs it


@pytest.fixture
def topic(kafka):
    name = kafka.admin.create_topic(PARTITIONS)
    values = [b"%d" % number for number in range(RECORDS)]
    for partition in range(PARTITIONS):
        kafka.admin.produce(name, values[partition::PARTITIONS], partition=partition)
    return name


def every(topic_ends):
    return {
        (partition, offset)
        for partition, end in topic_ends.items()
        for offset in range(end)
    }


ENDS = dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)


async def moved(admin, source, target):
    planned = await plan(admin, source, target)
    assert not planned.obstacles
    assert not planned.errors
    results = await execute(admin, planned)
    assert not results.errors
    assert planned.offsets == results.found
    return planned


async def test_only_announced_records_are_delivered_twice_and_none_is_lost(
    kafka, topic
):
    classic, shared = f"classic-{topic}", f"shared-{topic}"
    async with ShareGroupAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        before = await read_classic(kafka, topic, classic, 4_000)
        there = await moved(admin, classic, shared)

        # Early records stay unacknowledged, so the records above them are acknowledged
        # out of order.
        def choose(record):
            if record.offset % 500 == 250:
                return None
            return "reject" if record.offset % 100 == 7 else "accept"

        between = await acknowledge(kafka, topic, shared, choose, 3_000)
        back = await moved(admin, shared, classic)
        left = RECORDS - sum(one.offset for one in back.moves.values())
        after = await read_classic(kafka, topic, classic, left)

    settled = between["accept"] + between["reject"]
    assert Direction.TO_SHARE_GROUP is there.direction
    assert (0, 0) == (there.twice, there.missed)
    assert not before & settled
    twice = (before + settled) & after
    assert Direction.TO_CONSUMER_GROUP is back.direction
    assert (back.twice, 0) == (twice.total(), back.missed)
    assert back.twice
    assert every(ENDS) == {*before, *settled, *after}
    assert {1} == set(before.values()) | set(after.values())


async def test_report_names_partitions(kafka, topic):
    shared, classic = f"shared-{topic}", f"classic-{topic}"
    async with ShareGroupAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        starts = {TopicPartition(topic, n): 0 for n in range(PARTITIONS)}
        (await admin.alter_share_group_offsets(shared, starts)).check()

        held = set()

        def choose(record):
            if record.offset not in (3, 9):
                return "accept"
            held.add((record.partition, record.offset))
            return None

        done = await acknowledge(kafka, topic, shared, choose, 1_000)
        back = await plan(admin, shared, classic)

    for key, moved in back.moves.items():
        accepted = [
            at for partition, at in done["accept"] if partition == key.partition
        ]
        held_here = {at for partition, at in held if partition == key.partition}
        start = min(held_here, default=len(accepted))
        assert start == moved.offset
        assert sum(at > start for at in accepted) == moved.acknowledged == moved.twice
        assert (0, 0) == (moved.archived, moved.missed)
    assert held
