"""Direct changes to the brokers, as a consumer sees them; on a virtual clock."""

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.errors import CorruptRecordsError
from sharecons.testing import EmbeddedBroker

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True


@pytest.fixture
async def kafka():
    broker = EmbeddedBroker(brokers=3, topics={"orders": 1}, listen=False)
    async with broker:
        broker.set_group_config("g", {"share.auto.offset.reset": "earliest"})
        yield broker


def consumer(kafka, group_id="g", **options):
    return ShareConsumer(
        "orders",
        group_id=group_id,
        bootstrap_servers=kafka.bootstrap_servers,
        network=kafka.network,
        acknowledgement="explicit",
        **options,
    )


async def take(consumer, count, within=20.0):
    """Return the next records, and the seconds that they took."""
    began = anyio.current_time()
    records = []
    with anyio.fail_after(within):
        async for record in consumer:
            records.append(record)
            if len(records) == count:
                break
    return records, anyio.current_time() - began


async def test_lock_expiry_takes_no_real_time(kafka):
    kafka.produce("orders", [b"x"])
    async with consumer(kafka) as slow, consumer(kafka) as other:
        await take(slow, 1)
        (again,), seconds = await take(other, 1, within=60)

    assert 2 == again.delivery_count
    assert 29 < seconds < 31


async def test_expire_locks_releases_records(kafka):
    kafka.produce("orders", [b"x"])
    async with consumer(kafka) as slow, consumer(kafka) as other:
        await take(slow, 1)
        kafka.expire_locks("g", "orders", 0)
        (again,), seconds = await take(other, 1)

    assert 2 == again.delivery_count
    assert seconds < 2


async def test_expire_locks_keeps_locks_of_other_groups(kafka):
    kafka.produce("orders", [b"x"])
    async with (
        consumer(kafka) as slow,
        consumer(kafka) as other,
        consumer(kafka, group_id="another") as outside,
    ):
        await outside.assigned()
        await take(slow, 1)
        kafka.expire_locks("another")
        with pytest.raises(TimeoutError):
            await take(other, 1, within=20)


async def test_unknown_groups_members_and_partitions_are_errors(kafka):
    async with consumer(kafka) as first, consumer(kafka, group_id="another") as second:
        await first.assigned()
        await second.assigned()
        with pytest.raises(
            LookupError, match="'h' does not exist; the share groups are 'another', 'g'"
        ):
            kafka.expire_locks("h")
        with pytest.raises(LookupError, match="topic 'orders' has no partition 7"):
            kafka.expire_locks("g", "orders", 7)
        with pytest.raises(LookupError, match="share group 'h' does not exist"):
            kafka.forget_session("h", first.member_id)
        with pytest.raises(LookupError, match="group 'g' has no member"):
            kafka.forget_session("g", second.member_id)


async def test_forget_session_releases_records(kafka):
    kafka.produce("orders", [b"x"])
    async with consumer(kafka) as first, consumer(kafka) as other:
        await take(first, 1)
        kafka.forget_session("g", first.member_id)
        (again,), seconds = await take(other, 1)

    assert 2 == again.delivery_count
    assert seconds < 2


async def test_forgotten_member_rejoins(kafka):
    async with consumer(kafka) as first:
        await first.poll(timeout=3)
        kafka.forget_member("g", first.member_id)
        kafka.produce("orders", [b"x"])
        (record,), _ = await take(first, 1)

    assert b"x" == record.value
    joins = [
        request for request in kafka.requests if request.api == "ShareGroupHeartbeat"
    ]
    assert len(joins) > 2


async def test_corrupt_batch_affects_one_batch(kafka):
    kafka.produce("orders", [b"good", b"bad", b"good"], batch=1)
    kafka.corrupt_batch("orders", 0, 1)
    offsets, damaged = set(), set()
    async with consumer(kafka) as only:
        while offsets != {0, 2} or not damaged:
            try:
                offsets |= {record.offset for record in (await take(only, 1))[0]}
            except CorruptRecordsError as error:
                damaged.add((error.first_offset, error.last_offset))

    assert {(1, 1)} == damaged


@pytest.mark.parametrize("what", ["leader", "coordinator", "broker"])
async def test_consumers_follow_moved_leaders_and_coordinators(kafka, what):
    async with consumer(kafka) as only:
        for number in range(1, 4):
            if what == "leader":
                kafka.move_leader("orders", 0, number)
            elif what == "coordinator":
                kafka.move_coordinator("g", number)
            else:
                kafka.stop_broker(number)
            kafka.produce("orders", [b"%d" % number])
            (record,), _ = await take(only, 1, within=30)
            record.accept()
            await only.commit()
            assert b"%d" % number == record.value
            if what == "broker":
                kafka.start_broker(number)


async def test_records_arrive_within_the_assignment_interval(kafka):
    kafka.produce("orders", [b"%d" % i for i in range(1000)])
    async with consumer(kafka) as only:
        records, seconds = await take(only, 1000)

    assert [b"%d" % i for i in range(1000)] == [record.value for record in records]
    assert seconds < 1.5
