"""The ground rules of the protocol that docs/design.md relies on, on a real broker.

They speak raw requests: a broker of another version that behaves otherwise fails
here first, and by name.
"""

import time

import anyio
import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.messages import DescribeGroupConfig
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.raw import (
    ACCEPT,
    REJECT,
    RELEASE,
    RawMember,
    counts,
    offsets,
    said,
)
from tests.scenarios.share_state import share_group_state
from tests.scenarios.versions import (
    HAS_VERSION_2,
    LET_GO,
    PAST_THE_WINDOW,
    since_4_2,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The rules are the broker's: one event loop is as good as another."""
    return "asyncio"


def queue(admin: Admin, records: int, **config: str) -> tuple[str, str]:
    """A topic of one partition with records, and a group that begins at the first."""
    topic = admin.create_topic(partitions=1)
    group = f"group-{topic}"
    admin.set_group_config(group, {"share.auto.offset.reset": "earliest", **config})
    if records:
        admin.produce(topic, [b"%d" % i for i in range(records)], partition=0)
    return topic, group


async def next_counts(member: RawMember, partition, *, tries: int = 20) -> dict:
    """Fetch until something comes."""
    for _ in range(tries):
        found = counts(await member.fetch_one(partition, wait=0.5))
        if found:
            return found
    return {}


async def test_assignment_comes_a_second_after_joining_to_who_asks(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group) as member:
        await member.find_coordinator()
        # A coordinator that is new at it loads first.
        while (first := await member.heartbeat(0, topic)).error != Code.NONE:
            await anyio.sleep(0.05)
        began = time.monotonic()
        await member.join(topic)
        seconds = time.monotonic() - began

    assert not first.assignment
    assert first.heartbeat_interval == 5.0
    assert seconds < 2.5, "where a heartbeat interval is 5 s"


async def test_acknowledging_beside_a_parked_fetch_ends_it_and_costs_a_delivery(
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
                parked.append(await member.leader.ask(request, 20))

            tasks.start_soon(park)
            await anyio.sleep(0.3)
            accepted = await member.acknowledge(
                said(partition, (0, 0, ACCEPT)), epoch=2, on=beside
            )
            admin.produce(topic, [b"late"], partition=0)
        await beside.aclose()

        assert accepted.error == Code.NONE
        assert parked[0].error == Code.INVALID_SHARE_SESSION_EPOCH

        member.session_epoch = 0
        await member.reconnect()
        assert await next_counts(member, partition) == {1: LET_GO}


async def test_end_of_the_connection_releases_at_once(admin: Admin) -> None:
    topic, group = queue(admin, 3)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert counts(await member.fetch_one(partition)) == {0: 1, 1: 1, 2: 1}
        await member.reconnect()
        late = await member.acknowledge(said(partition, (0, 2, ACCEPT)))
        member.session_epoch = 0

        assert late.error == Code.SHARE_SESSION_NOT_FOUND
        again = await next_counts(member, partition, tries=4)
        assert again == {0: LET_GO, 1: LET_GO, 2: LET_GO}


async def test_opening_again_on_a_live_connection_releases_nothing(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 2)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0, 1]
        member.session_epoch = 0
        assert offsets(await member.fetch_one(partition, wait=0.5)) == []

        answer = await member.acknowledge(said(partition, (0, 1, ACCEPT)))

        assert [p.acknowledge_error for p in answer.partitions] == [Code.NONE]


async def test_forgetting_a_partition_releases_nothing(admin: Admin) -> None:
    topic, group = queue(admin, 2)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0, 1]
        await member.fetch(forget=[partition], wait=0.0)
        admin.produce(topic, [b"2"], partition=0)
        assert (await member.fetch(wait=0.5)).partitions == ()

        answer = await member.fetch(
            acknowledge=said(partition, (0, 1, ACCEPT)), forget=[partition], wait=0.0
        )

        (told,) = answer.partitions
        assert (told.acknowledge_error, told.acquired) == (Code.NONE, ())
        (again,) = (await member.fetch(partition)).partitions
        assert counts(again) == {2: 1}


async def test_opening_with_no_bytes_to_give_acquires_nothing(admin: Admin) -> None:
    topic, group = queue(admin, 2)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        await member.fetch_one(partition, wait=0.0, max_bytes=0)

        assert await next_counts(member, partition) == {0: 1, 1: 1}


@pytest.mark.parametrize("way", ["release", "close", "close by fetch", "connection"])
async def test_whatever_lets_a_record_go_costs_a_delivery(
    admin: Admin, way: str
) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert counts(await member.fetch_one(partition)) == {0: 1}
        if way == "release":
            await member.acknowledge(said(partition, (0, 0, RELEASE)))
        elif way == "close":
            await member.acknowledge({}, epoch=-1)
            member.session_epoch = 0
        elif way == "close by fetch":
            await member.fetch(epoch=-1)
            member.session_epoch = 0
        else:
            await member.reconnect()
            member.session_epoch = 0

        count = 2 if way == "release" else LET_GO
        assert await next_counts(member, partition) == {0: count}


async def test_end_of_the_lock_costs_a_delivery(admin: Admin) -> None:
    topic, group = queue(admin, 1, **{"share.record.lock.duration.ms": "1000"})
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert counts(await member.fetch_one(partition)) == {0: 1}

        assert await next_counts(member, partition) == {0: 2}


async def test_letting_go_at_the_delivery_limit_archives(admin: Admin) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        seen = []
        for _ in range(6):
            found = counts(await member.fetch_one(partition, wait=0.7))
            seen += found.values()
            if found:
                await member.acknowledge(said(partition, (0, 0, RELEASE)))

    assert seen == [1, 2, 3, 4, 5]


@since_4_2
async def test_near_the_delivery_limit_records_come_alone(admin: Admin) -> None:
    topic, group = queue(admin, 30)
    sizes: dict[int, list[int]] = {}
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        for _ in range(60):
            found = counts(await member.fetch_one(partition, wait=0.5))
            if not found:
                break
            sizes.setdefault(max(found.values()), []).append(len(found))
            first, last = min(found), max(found)
            # Released, until their last delivery.
            kind = ACCEPT if max(found.values()) == 5 else RELEASE
            await member.acknowledge(said(partition, (first, last, kind)))

    assert sizes[1] == [30]
    assert max(sizes[5]) < 30, "fewer at a time on their last delivery"
    assert sum(sizes[5]) == 30


async def test_one_offset_not_held_spoils_the_acknowledgement_of_all(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 4)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0, 1, 2, 3]
        # 2 is let go, and so not held when all four are accepted.
        await member.acknowledge(said(partition, (2, 2, RELEASE)))
        refused = await member.acknowledge(said(partition, (0, 3, ACCEPT)))
        assert [p.acknowledge_error for p in refused.partitions] == [
            Code.INVALID_RECORD_STATE
        ]
        # Nothing of it was applied: what is held can be accepted yet.
        good = await member.acknowledge(said(partition, (0, 1, ACCEPT), (3, 3, ACCEPT)))

        assert [p.acknowledge_error for p in good.partitions] == [Code.NONE]
        assert await next_counts(member, partition) == {2: 2}


async def test_offsets_below_the_start_offset_are_passed_over(admin: Admin) -> None:
    topic, group = queue(admin, 2)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert offsets(await member.fetch_one(partition)) == [0, 1]
        await member.acknowledge(said(partition, (0, 0, ACCEPT)))
        again = await member.acknowledge(said(partition, (0, 0, RELEASE)))

        assert [p.acknowledge_error for p in again.partitions] == [Code.NONE]


@pytest.mark.parametrize(("batch", "end"), [(100, 1999), (70, PAST_THE_WINDOW)])
async def test_a_record_held_at_the_start_stops_the_partition_at_the_window(
    admin: Admin, batch: int, end: int
) -> None:
    topic, group = queue(admin, 0)
    # In batches of just this size, since the window does not cut one in two. One at a
    # time: what is sent again may be cut otherwise where more is under way.
    producer = admin.producer(batch_num_messages=batch, linger_ms=10_000)
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
            await member.acknowledge(said(partition, (kept[0], kept[-1], ACCEPT)))

    assert last == end


async def test_leaving_the_group_frees_nothing(admin: Admin) -> None:
    topic, group = queue(admin, 1, **{"share.record.lock.duration.ms": "3000"})
    async with (
        RawMember(admin.bootstrap_servers, group) as leaving,
        RawMember(admin.bootstrap_servers, group) as staying,
    ):
        (partition,) = await leaving.join(topic)
        await staying.join(topic)
        assert offsets(await leaving.fetch_one(partition)) == [0]
        began = time.monotonic()
        await leaving.heartbeat(-1)
        assert await next_counts(staying, partition) == {0: 2}

        assert time.monotonic() - began > 2.0, "by the lock's end, not before"


async def test_a_member_of_the_same_id_has_its_assignment_again_at_once(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 1)
    async with RawMember(admin.bootstrap_servers, group, "pod-1") as member:
        await member.join(topic)
    async with RawMember(admin.bootstrap_servers, group, "pod-1") as member:
        await member.find_coordinator()
        answer = await member.heartbeat(0, topic)
        if not HAS_VERSION_2:
            # It is fenced for its epoch, and has to leave before it may join again.
            assert answer.error == Code.FENCED_MEMBER_EPOCH
            await member.heartbeat(-1)
            answer = await member.heartbeat(0, topic)
            return

        assert answer.assignment


async def test_default_fetch_brings_whole_batches(admin: Admin) -> None:
    topic, group = queue(admin, 1000)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        whole = offsets(await member.fetch_one(partition, records=10))

        assert len(whole) > 10


@since_4_2
async def test_record_limit_brings_no_more(admin: Admin) -> None:
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
        answer = await member.leader.ask(request, 10)

    assert answer.value == value


async def test_share_coordinator_tells_what_was_said_but_not_what_is_locked(
    admin: Admin,
) -> None:
    topic, group = queue(admin, 100)
    async with RawMember(admin.bootstrap_servers, group) as member:
        (partition,) = await member.join(topic)
        assert len(offsets(await member.fetch_one(partition))) == 100
        await member.acknowledge(
            said(
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
async def test_throttled_response_is_empty_and_uses_up_a_delivery(
    real_kafka: Kafka,
) -> None:
    """The records are acquired, stay locked, and are not in the response."""
    admin = real_kafka.admin
    topic, group = queue(admin, 0, **{"share.record.lock.duration.ms": "3000"})
    admin.produce(topic, [b"x" * 1000] * 1000, batch_size=1_000_000, linger_ms=500)
    limited = f"limited-{group}"
    admin.set_consumer_quota(limited, 150_000)  # one batch in ten seconds
    where = admin.bootstrap_servers
    async with (
        RawMember(where, group, client_id=limited) as first,
        RawMember(where, group) as second,
    ):
        (partition,) = await first.join(topic)
        answer = await first.fetch(partition, records=1, limit=True)
        assert (0.0, [0]) == (answer.throttle, offsets(answer.partitions[0]))
        answer = await first.fetch(records=1, limit=True)
        assert answer.throttle > 1.0
        assert () == answer.partitions

        await second.join(topic)
        locked = offsets(await second.fetch_one(partition, records=1, limit=True))
        await anyio.sleep(3.5)
        expired = await next_counts(second, partition)

    assert [2] == locked, "offset 1 is locked"
    assert (2, 2) == (expired[0], expired[1])
    assert 1 == expired[3]
