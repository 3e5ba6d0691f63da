"""The broker behaviour that docs/design.md relies on, checked on a real broker.

The tests send raw requests. If another broker version behaves differently, the test of
that rule fails.
"""

import time

import anyio
import pytest

from sharecons import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.protocol.codes import Code
from sharecons.protocol.group.config_messages import DescribeGroupConfig
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.raw import (
    ACCEPT,
    REJECT,
    RELEASE,
    RawMember,
    acks,
    delivery_counts,
    offsets,
)
from tests.scenarios.repeating import repeat
from tests.scenarios.share_state import share_group_state
from tests.scenarios.versions import (
    COUNT_AFTER_CLOSE,
    HAS_VERSION_2,
    LAST_OFFSET_OF_WINDOW,
    since_4_2,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """One event loop is enough to test a broker."""
    return "asyncio"


def queue(admin: Admin, records: int, **config: str) -> tuple[str, str]:
    """Create a topic with one partition and a group that starts at its first record."""
    topic = admin.create_topic(partitions=1)
    group = f"group-{topic}"
    admin.set_group_config(group, {"share.auto.offset.reset": "earliest", **config})
    if records:
        values = [b"%d" % i for i in range(records)]
        admin.produce(topic, values, partition=0, linger_ms=60_000)  # one batch
    return topic, group


async def next_counts(member: RawMember, partition, *, tries: int = 20) -> dict:
    """Fetch until records arrive; return their delivery counts."""
    for _ in range(tries):
        found = delivery_counts(await member.fetch_one(partition, wait=0.5))
        if found:
            return found
    return {}


async def test_heartbeat_returns_assignment_a_second_after_joining(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group) as member:
        await member.find_coordinator()
        first = await member.join_without_assignment(topic)
        began = time.monotonic()
        await member.join(topic)
        seconds = time.monotonic() - began

    assert first.error == Code.NONE
    assert not first.assignment
    assert first.heartbeat_interval == 5.0
    assert seconds < 2.5, "less than the heartbeat interval of 5 s"


async def test_acknowledge_during_waiting_fetch_ends_session_and_uses_delivery(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0]
        beside = await member.connect()
        parked = []
        async with anyio.create_task_group() as tasks:

            async def park() -> None:
                request = member.fetch_request(epoch=1, wait=3.0)
                parked.append(await member.leader.send(request, 20))

            tasks.start_soon(park)
            # Before the fetch has reached the broker, the epoch is not the next one.
            accepted = await repeat(
                lambda: member.acknowledge(
                    acks(partition, (0, 0, ACCEPT)), epoch=2, on=beside
                ),
                until=lambda response: response.error == Code.NONE,
            )
            admin.produce(topic, [b"late"], partition=0)
        await beside.aclose()

        assert [each.acknowledge_error for each in accepted.partitions] == [Code.NONE]
        assert parked[0].error == Code.INVALID_SHARE_SESSION_EPOCH

        await member.reconnect()
        assert await next_counts(member, partition) == {1: COUNT_AFTER_CLOSE}


async def test_closed_connection_releases_records_immediately(admin: Admin) -> None:
    topic, group = queue(admin, 3)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert delivery_counts(await member.fetch_one(partition)) == {0: 1, 1: 1, 2: 1}
        await member.reconnect()
        late = await member.acknowledge(acks(partition, (0, 2, ACCEPT)), epoch=1)

        assert late.error == Code.SHARE_SESSION_NOT_FOUND
        again = await next_counts(member, partition, tries=4)
        assert again == {
            0: COUNT_AFTER_CLOSE,
            1: COUNT_AFTER_CLOSE,
            2: COUNT_AFTER_CLOSE,
        }


async def test_new_session_on_same_connection_releases_no_record(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 2)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0, 1]
        member.session_epoch = 0
        assert offsets(await member.fetch_one(partition, wait=0.5)) == []

        response = await member.acknowledge(acks(partition, (0, 1, ACCEPT)))

        assert [p.acknowledge_error for p in response.partitions] == [Code.NONE]


async def test_forgotten_partition_releases_no_record(admin: Admin) -> None:
    topic, group = queue(admin, 2)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0, 1]
        await member.fetch(forget=[partition], wait=0.0)
        admin.produce(topic, [b"2"], partition=0)
        assert (await member.fetch(wait=0.5)).partitions == ()

        response = await member.fetch(
            acknowledge=acks(partition, (0, 1, ACCEPT)), forget=[partition], wait=0.0
        )

        (returned,) = response.partitions
        assert (returned.acknowledge_error, returned.acquired) == (Code.NONE, ())
        (again,) = (await member.fetch(partition)).partitions
        assert delivery_counts(again) == {2: 1}


async def test_first_fetch_with_zero_max_bytes_acquires_no_record(admin: Admin) -> None:
    topic, group = queue(admin, 2)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        await member.fetch_one(partition, wait=0.0, max_bytes=0)

        assert await next_counts(member, partition) == {0: 1, 1: 1}


@pytest.mark.parametrize("way", ["release", "close", "close by fetch", "connection"])
async def test_every_way_to_release_record_uses_delivery(
    admin: Admin, way: str
) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert delivery_counts(await member.fetch_one(partition)) == {0: 1}
        if way == "release":
            await member.acknowledge(acks(partition, (0, 0, RELEASE)))
        elif way == "close":
            await member.acknowledge({}, epoch=-1)
            member.session_epoch = 0
        elif way == "close by fetch":
            await member.fetch(epoch=-1)
            member.session_epoch = 0
        else:
            await member.reconnect()

        count = 2 if way == "release" else COUNT_AFTER_CLOSE
        assert await next_counts(member, partition) == {0: count}


async def test_expired_lock_uses_delivery(admin: Admin) -> None:
    topic, group = queue(admin, 1, **{"share.record.lock.duration.ms": "1000"})
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert delivery_counts(await member.fetch_one(partition)) == {0: 1}

        assert await next_counts(member, partition) == {0: 2}


async def test_release_at_delivery_limit_archives_record(admin: Admin) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        seen = []
        for _ in range(6):
            wait = 5.0 if len(seen) < 5 else 0.7
            found = delivery_counts(await member.fetch_one(partition, wait=wait))
            seen += found.values()
            if found:
                await member.acknowledge(acks(partition, (0, 0, RELEASE)))

    assert seen == [1, 2, 3, 4, 5]


@since_4_2
async def test_records_near_delivery_limit_arrive_in_smaller_batches(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 30)
    sizes: dict[int, list[int]] = {}
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        while sum(sizes.get(5, ())) < 30:
            found = delivery_counts(await member.fetch_one(partition))
            assert found
            sizes.setdefault(max(found.values()), []).append(len(found))
            first, last = min(found), max(found)
            # Release the records until their last delivery.
            kind = ACCEPT if max(found.values()) == 5 else RELEASE
            await member.acknowledge(acks(partition, (first, last, kind)))

    assert sizes[1] == [30]
    assert max(sizes[5]) < 30, "smaller fetches on the last delivery"
    assert sum(sizes[5]) == 30


async def test_acknowledgement_with_one_unlocked_offset_fails_completely(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 4)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0, 1, 2, 3]
        # Offset 2 is released, so it is not locked when all four are accepted.
        await member.acknowledge(acks(partition, (2, 2, RELEASE)))
        rejected = await member.acknowledge(acks(partition, (0, 3, ACCEPT)))
        assert [p.acknowledge_error for p in rejected.partitions] == [
            Code.INVALID_RECORD_STATE
        ]
        # Nothing was applied: the locked offsets can still be accepted.
        good = await member.acknowledge(acks(partition, (0, 1, ACCEPT), (3, 3, ACCEPT)))

        assert [p.acknowledge_error for p in good.partitions] == [Code.NONE]
        assert await next_counts(member, partition) == {2: 2}


async def test_acknowledgement_below_start_offset_is_ignored(admin: Admin) -> None:
    topic, group = queue(admin, 2)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0, 1]
        await member.acknowledge(acks(partition, (0, 0, ACCEPT)))
        again = await member.acknowledge(acks(partition, (0, 0, RELEASE)))

        assert [p.acknowledge_error for p in again.partitions] == [Code.NONE]


@pytest.mark.parametrize(("batch", "end"), [(100, 1999), (70, LAST_OFFSET_OF_WINDOW)])
async def test_locked_first_record_stops_partition_at_window(
    admin: Admin, batch: int, end: int
) -> None:
    topic, group = queue(admin, 0)
    # The window does not split batches, so they need this exact size. Each is flushed
    # alone: a retry with others in flight could change the sizes.
    producer = admin.producer(batch_num_messages=batch, linger_ms=60_000)
    for first in range(0, 3500, batch):
        for i in range(first, first + batch):
            producer.produce(topic, b"%d" % i, partition=0)
        assert producer.flush(10) == 0
    last = -1
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        while True:
            got = offsets(await member.fetch_one(partition, wait=0.5))
            if not got:
                break
            last = max(last, *got)
            kept = [o for o in got if o != 0]
            await member.acknowledge(acks(partition, (kept[0], kept[-1], ACCEPT)))

    assert last == end


async def test_leaving_group_releases_no_record(admin: Admin) -> None:
    topic, group = queue(admin, 1, **{"share.record.lock.duration.ms": "3000"})
    async with (
        RawMember(admin.bootstrap_servers, group) as leaving,
        RawMember(admin.bootstrap_servers, group) as staying,
    ):
        (partition,) = await leaving.join(topic)
        await staying.join(topic)
        began = time.monotonic()
        assert offsets(await leaving.fetch_one(partition)) == [0]
        await leaving.heartbeat(-1)
        assert await next_counts(staying, partition) == {0: 2}

        assert time.monotonic() - began > 3.0, "released by the end of the lock"


async def test_member_with_same_id_gets_assignment_immediately(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group, "pod-1") as member:
        await member.join(topic)
    async with RawMember(admin.bootstrap_servers, group, "pod-1") as member:
        await member.find_coordinator()
        response = await member.heartbeat(0, topic)
        if not HAS_VERSION_2:
            # Its member epoch is fenced: it must leave before it joins again.
            assert response.error == Code.FENCED_MEMBER_EPOCH
            await member.heartbeat(-1)
            response = await member.heartbeat(0, topic)
            return

        assert response.assignment


async def test_default_fetch_returns_whole_batches(admin: Admin) -> None:
    topic, group = queue(admin, 1000)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        whole = offsets(await member.fetch_one(partition, records=10))

        assert len(whole) > 10


@since_4_2
async def test_record_limit_fetch_returns_exact_count(admin: Admin) -> None:
    topic, group = queue(admin, 1000)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        exact = offsets(await member.fetch_one(partition, records=10, limit=True))

        assert exact == list(range(10))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share.auto.offset.reset", "latest"),
        ("share.isolation.level", "read_uncommitted"),
        ("share.session.timeout.ms", "45000"),
        ("share.heartbeat.interval.ms", "5000"),
        ("share.record.lock.duration.ms", "30000"),
    ],
)
async def test_group_config_defaults(admin: Admin, name: str, value: str) -> None:
    async with RawMember(admin.bootstrap_servers, "never-configured") as member:
        request = DescribeGroupConfig(group_id=member.group, name=name)
        response = await member.leader.send(request, 10)

    assert response.value == value


@pytest.mark.parametrize(
    ("ended_by", "kept"),
    [("idle", True), ("forgotten", True), ("closed", True), ("lost", False)],
)
async def test_start_that_is_not_stored_is_kept_until_the_connection_ends(
    admin: Admin, ended_by: str, *, kept: bool
) -> None:
    topic = admin.create_topic()
    async with RawMember(admin.bootstrap_servers, f"group-{topic}") as member:
        (partition,) = await member.join(topic)
        for _ in range(2):
            await member.fetch_one(partition, wait=0.3, records=-1)
        if ended_by == "forgotten":
            await member.fetch(forget=[partition], wait=0.1)
        elif ended_by == "closed":
            await member.acknowledge({}, epoch=-1)
            member.session_epoch = 0
        elif ended_by == "lost":
            await member.reconnect()
        admin.produce(topic, [b"0", b"1"])
        added = [] if ended_by == "idle" else [partition]
        response = await member.fetch(*added, wait=5.0 if kept else 1.0)

    received = [o for each in response.partitions for o in offsets(each)]
    assert received == ([0, 1] if kept else [])


@since_4_2
async def test_start_of_a_group_is_stored_only_while_it_has_no_members(
    admin: Admin,
) -> None:
    topic = admin.create_topic()
    key, group = TopicPartition(topic, 0), f"group-{topic}"
    admin.produce(topic, [b"0", b"1", b"2"])
    async with (
        ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client,
        RawMember(admin.bootstrap_servers, group) as member,
    ):
        new = await client.alter_share_group_offsets(group, {key: 1})
        (partition,) = await member.join(topic)
        joined = await client.alter_share_group_offsets(group, {key: 2})
        received = offsets(await member.fetch_one(partition))

    assert new[key].ok
    assert "NON_EMPTY_GROUP" in str(joined[key].error)
    assert received == [1, 2]


async def test_share_coordinator_returns_acknowledgements_but_no_locks(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 100)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert len(offsets(await member.fetch_one(partition))) == 100
        await member.acknowledge(
            acks(
                partition,
                (10, 19, ACCEPT),
                (20, 24, RELEASE),
                (25, 29, REJECT),
            )
        )
        states = share_group_state(
            admin.bootstrap_servers, group, partition.topic_id, partition.partition
        )

    available, acknowledged, archived = 0, 2, 4
    assert (10, 19, acknowledged, 1) in states
    assert (20, 24, available, 1) in states
    assert (25, 29, archived, 1) in states
    assert all(first >= 10 and last <= 29 for first, last, _, _ in states)


@since_4_2
@pytest.mark.kafka
async def test_throttled_response_is_empty_and_uses_delivery(
    real_kafka: Kafka,
) -> None:
    """The records are acquired and stay locked, but are not in the response."""
    admin = real_kafka.admin
    topic, group = queue(admin, 0, **{"share.record.lock.duration.ms": "3000"})
    admin.produce(topic, [b"x" * 1000] * 1000, batch_size=1_000_000, linger_ms=60_000)
    limited = f"limited-{group}"
    admin.set_consumer_quota(limited, 150_000)  # one batch in ten seconds
    where = admin.bootstrap_servers
    async with (
        RawMember(where, group, client_id=limited) as first,
        RawMember(where, group) as second,
    ):
        (partition,) = await first.join(topic)
        await second.join(topic)
        response = await first.fetch(partition, records=1, limit=True)
        assert (0.0, [0]) == (response.throttle, offsets(response.partitions[0]))
        # One more response exceeds the quota; two or three if the broker applies it
        # late, or if the batch is not full.
        lost = 0
        while not response.throttle and lost < 5:
            lost += 1
            response = await first.fetch(records=1, limit=True)
        assert response.throttle > 1.0
        assert () == response.partitions

        locked = offsets(await second.fetch_one(partition, records=1, limit=True))
        await anyio.sleep(3.5)  # real time: the lock expires
        expired = await next_counts(second, partition)

    assert [lost + 1] == locked, f"offset {lost} is locked"
    assert (2, 2) == (expired[0], expired[lost])
    assert 1 == expired[lost + 2]
