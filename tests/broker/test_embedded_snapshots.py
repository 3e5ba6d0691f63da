"""`records`, `group` and `wait_until_settled` of an embedded broker."""

import threading
from dataclasses import FrozenInstanceError

import anyio
import anyio.to_thread
import pytest
from confluent_kafka import Producer

from sharecons import ShareConsumer
from sharecons.testing import (
    EmbeddedBroker,
    OffsetState,
    RecordSnapshot,
    virtual_time,
)
from sharecons.testing.broker import wait_settled

VIRTUAL = [virtual_time.backend(name) for name in virtual_time.BACKENDS]
EARLIEST = {"share.auto.offset.reset": "earliest"}
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = OffsetState


def on_virtual_clocks(test):
    return pytest.mark.anyio(pytest.mark.parametrize("anyio_backend", VIRTUAL)(test))


@pytest.fixture
async def kafka():
    async with EmbeddedBroker(topics={"orders": 1}, listen=False) as kafka:
        kafka.set_group_config("g", EARLIEST)
        yield kafka


def consumer(kafka, *topics, **options):
    return ShareConsumer(
        *(topics or ("orders",)),
        group_id="g",
        bootstrap_servers=kafka.bootstrap_servers,
        network=kafka.network,
        acknowledgement="explicit",
        **options,
    )


async def take(consumer, count):
    records = []
    with anyio.fail_after(30):
        async for record in consumer:
            records.append(record)
            if len(records) == count:
                return records


def states(kafka, partition=0):
    found = kafka.group("g").partition("orders", partition)
    return [(each.offset, each.state, each.delivery_count) for each in found.in_flight]


# Records.


def test_records_have_all_produced_fields():
    with EmbeddedBroker(topics={"orders": 2}) as kafka:
        headers = [("trace", b"1"), ("trace", None)]
        kafka.produce(
            "orders",
            ["one", None],
            keys=[b"k", None],
            headers=headers,
            partition=1,
            timestamp=1_700_000_000_000,
        )
        kafka.produce("orders", [b"zero"], partition=0, timestamp=7)

        zero, one, two = kafka.records("orders")

        assert one == RecordSnapshot(
            topic="orders",
            partition=1,
            offset=0,
            timestamp=1_700_000_000_000,
            key=b"k",
            value=b"one",
            headers=(("trace", b"1"), ("trace", None)),
        )
        assert (0, 0, 7, b"zero", ()) == (
            zero.partition,
            zero.offset,
            zero.timestamp,
            zero.value,
            zero.headers,
        )
        assert (1, 1, None, None) == (two.partition, two.offset, two.key, two.value)
        assert (one, two) == kafka.records("orders", partition=1)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_compressed_batches_are_decoded(codec):
    with EmbeddedBroker(topics={"orders": 1}) as kafka:
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "compression.type": codec,
                "linger.ms": 50,
            }
        )
        for number in range(100):
            producer.produce(
                "orders",
                b"value" * 50,
                key=str(number),
                headers=[("h", b"x"), ("none", None)],
                timestamp=1_700_000_000_000 + number,
            )
        assert producer.flush(10) == 0

        records = kafka.records("orders")

    assert list(range(100)) == [each.offset for each in records]
    assert [str(n).encode() for n in range(100)] == [each.key for each in records]
    assert {b"value" * 50} == {each.value for each in records}
    assert {(("h", b"x"), ("none", None))} == {each.headers for each in records}
    times = [each.timestamp - 1_700_000_000_000 for each in records]
    assert list(range(100)) == times


def test_records_with_log_append_time_have_broker_time():
    with EmbeddedBroker() as kafka:
        config = {"message.timestamp.type": "LogAppendTime"}
        kafka.create_topic("orders", config=config)
        kafka.produce("orders", [b"x"], timestamp=7)

        (record,) = kafka.records("orders")

    assert record.timestamp > 1_700_000_000_000


def test_deleted_records_are_not_returned():
    with EmbeddedBroker(topics={"orders": 1}) as kafka:
        kafka.produce("orders", [b"%d" % number for number in range(10)])
        log = kafka.cluster.topics.by_name("orders").partition(0).log
        log.truncate_before(4)  # within the batch

        assert list(range(4, 10)) == [each.offset for each in kafka.records("orders")]


def test_records_of_missing_topics_and_partitions_raise():
    with EmbeddedBroker(topics={"orders": 1}) as kafka:
        assert () == kafka.records("orders")
        with pytest.raises(LookupError, match="topic 'order' does not exist"):
            kafka.records("order")
        with pytest.raises(LookupError, match="topic 'orders' has no partition 1"):
            kafka.records("orders", partition=1)


def test_records_of_a_damaged_batch_raise():
    with EmbeddedBroker(topics={"orders": 2}) as kafka:
        kafka.produce("orders", [b"x"] * 4, partition=1, batch=2)
        kafka.corrupt_batch("orders", 1, 3)

        with pytest.raises(
            ValueError, match=r"'orders', partition 1: .* offsets 2 to 3 is damaged"
        ):
            kafka.records("orders")
        assert () == kafka.records("orders", partition=0)


# Groups.


def test_missing_group_raises():
    with (
        EmbeddedBroker() as kafka,
        pytest.raises(LookupError, match="share group 'g' does not exist"),
    ):
        kafka.group("g")


@on_virtual_clocks
async def test_group_returns_members_and_assignments(kafka):
    kafka.create_topic("refunds", partitions=2)
    async with (
        consumer(kafka, "refunds", client_id="a") as first,
        consumer(kafka, "refunds", client_id="b") as second,
    ):
        with anyio.fail_after(30):
            while len(first.assignment) + len(second.assignment) != 2:
                await first.poll(timeout=0.1)
        group = kafka.group("g")
        ids = {first.member_id: "a", second.member_id: "b"}

    assert "g" == group.group_id
    assert ids == {each.member_id: each.client_id for each in group.members}
    assert [("refunds",)] * 2 == [each.topics for each in group.members]
    assert [("refunds", 0), ("refunds", 1)] == sorted(
        place for member in group.members for place in member.assignment
    )
    assert () == kafka.group("g").members  # both have left


@on_virtual_clocks
async def test_group_returns_state_of_each_offset_in_flight(kafka):
    kafka.produce("orders", [b"%d" % number for number in range(6)])
    async with consumer(kafka, max_records=5, acquire_mode="record_limit") as one:
        records = await take(one, 5)
        records[1].accept()
        records[2].reject()
        records[3].release()
        await one.commit()
        group = kafka.group("g")
        partition = group.partition("orders")

        assert 0 == partition.start_offset
        assert 6 == partition.end_offset
        held = partition[0]
        assert (ACQUIRED, 1, one.member_id) == (
            held.state,
            held.delivery_count,
            held.member_id,
        )
        assert (ACKNOWLEDGED, None) == (partition[1].state, partition[1].member_id)
        assert "archived" == partition[2].state
        assert partition[3].state in (AVAILABLE, ACQUIRED)  # it can be delivered again
        assert partition[3].delivery_count >= 1

        records[0].accept()
        await one.commit()
        after = kafka.group("g").partition("orders")
        assert 3 == after.start_offset
        assert 0 == partition.start_offset  # a snapshot does not change
        with pytest.raises(LookupError, match=r"offset 2 of orders-0 is not in flight"):
            after[2]
    with pytest.raises(LookupError, match="has no orders-1"):
        group.partition("orders", 1)
    with pytest.raises(FrozenInstanceError):
        partition.start_offset = 1  # type: ignore[misc]
    hash(group)


@on_virtual_clocks
async def test_group_shows_expired_locks_as_available(kafka):
    kafka.produce("orders", [b"x"])
    async with consumer(kafka) as only:
        await take(only, 1)
        assert [(0, ACQUIRED, 1)] == states(kafka)
        kafka.faults.on("ShareFetch", times=None).stall()
        await anyio.sleep(31)
        assert [(0, AVAILABLE, 1)] == states(kafka)


@on_virtual_clocks
async def test_group_returns_coordinator_state_after_leader_move(kafka):
    kafka.produce("orders", [b"%d" % number for number in range(4)])
    async with consumer(kafka) as only:
        records = await take(only, 4)
        records[2].accept()
        await only.commit()
    kafka.stop_broker(1)
    kafka.start_broker(1)

    partition = kafka.group("g").partition("orders")

    assert 0 == partition.start_offset
    assert ACKNOWLEDGED == partition[2].state
    assert {AVAILABLE} == {partition[offset].state for offset in (0, 1, 3)}


@on_virtual_clocks
async def test_group_has_no_start_offset_before_the_first_fetch(kafka):
    kafka.produce("orders", [b"x"])
    kafka.faults.on("ShareFetch", times=None).stall()
    async with consumer(kafka) as only:
        with anyio.fail_after(30):
            while not only.assignment:
                await only.poll(timeout=0.1)
        partition = kafka.group("g").partition("orders")

        assert partition.start_offset is None
        assert 1 == partition.end_offset
        assert () == partition.in_flight
        with pytest.raises(TimeoutError, match="orders-0: offset 0: not delivered yet"):
            await kafka.wait_until_settled("g", timeout=1)


# Waiting.


@on_virtual_clocks
async def test_wait_of_an_hour_checks_less_often_later():
    end = anyio.current_time() + 3600
    checks = []

    def unsettled():
        checks.append(anyio.current_time())
        return ["held"] if checks[-1] < end else []

    await wait_settled.wait("g", unsettled, timeout=4000)

    assert len(checks) < 1000
    assert end <= checks[-1] < end + 40


@on_virtual_clocks
async def test_wait_returns_when_all_records_are_settled(kafka):
    kafka.produce("orders", [b"%d" % number for number in range(30)])

    async def work():
        async with consumer(kafka) as only:
            async for record in only:
                await anyio.sleep(0.1)
                if record.offset % 3 == 0:
                    record.reject()
                elif record.offset % 3 == 1 and record.delivery_count == 1:
                    record.release()
                else:
                    record.accept()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        began = anyio.current_time()
        await kafka.wait_until_settled("g", timeout=60)
        seconds = anyio.current_time() - began
        partition = kafka.group("g").partition("orders")
        tasks.cancel_scope.cancel()

    assert 30 == partition.start_offset
    assert () == partition.in_flight
    assert seconds > 3


@on_virtual_clocks
async def test_wait_timeout_lists_unsettled_records(kafka):
    kafka.produce("orders", [b"%d" % number for number in range(8)])
    async with consumer(kafka, max_records=4, acquire_mode="record_limit") as only:
        records = await take(only, 4)
        records[0].accept()
        records[3].accept()
        await only.commit()
        with pytest.raises(TimeoutError) as raised:
            await kafka.wait_until_settled("g", timeout=0.5)
        member = only.member_id
    message = str(raised.value)

    assert message.startswith("share group 'g' is not settled after 0.5 s:")
    held = f"orders-0: offsets 1 to 2: acquired by member {member} after 1 delivery"
    assert held in message
    assert "orders-0: offset 3" not in message

    with pytest.raises(TimeoutError) as raised:
        await kafka.wait_until_settled("g", timeout=0)
    message = str(raised.value)
    assert "orders-0: offsets 1 to 2: available after 1 delivery" in message
    assert "orders-0: offsets 4 to 7" in message
    assert message.endswith("the group has no members")


@on_virtual_clocks
async def test_wait_for_one_topic_ignores_others(kafka):
    kafka.create_topic("refunds")
    kafka.produce("refunds", [b"x"])
    async with consumer(kafka, "orders", "refunds") as only:
        await take(only, 1)
        await kafka.wait_until_settled("g", "orders", timeout=1)
        with pytest.raises(TimeoutError, match="refunds-0: offset 0: acquired"):
            await kafka.wait_until_settled("g", timeout=1)
        kafka.create_topic("other")
        with pytest.raises(TimeoutError, match="no partition of topic 'other'"):
            await kafka.wait_until_settled("g", "other", timeout=1)
        with pytest.raises(LookupError, match="topic 'misspelt' does not exist"):
            await kafka.wait_until_settled("g", "misspelt", timeout=1)


@on_virtual_clocks
async def test_wait_for_missing_group_times_out_with_reason(kafka):
    with pytest.raises(TimeoutError, match="no consumer has joined"):
        await kafka.wait_until_settled("g", timeout=1)


@on_virtual_clocks
async def test_wait_can_be_cancelled(kafka):
    with anyio.move_on_after(1) as scope:
        await kafka.wait_until_settled("g", timeout=60)

    assert scope.cancelled_caught


def test_blocking_wait_runs_beside_consumers_in_other_threads():
    with EmbeddedBroker(topics={"orders": 2}) as kafka:
        kafka.set_group_config("g", {**EARLIEST, "share.assignment.interval.ms": 0})
        kafka.produce("orders", [b"x"] * 20)

        async def work():
            async with ShareConsumer(
                "orders",
                group_id="g",
                bootstrap_servers=kafka.bootstrap_servers,
                acknowledgement="explicit",
            ) as only:
                for record in await take(only, 20):
                    record.accept()

        worker = threading.Thread(target=anyio.run, args=(work,))
        worker.start()
        kafka.wait_until_settled_sync("g", "orders", timeout=30)
        group = kafka.group("g")
        worker.join()

        assert [(0, True), (1, True)] == [
            (each.partition, each.start_offset == each.end_offset)
            for each in group.partitions
        ]
        kafka.produce("orders", [b"x"])
        with pytest.raises(TimeoutError, match="not delivered yet"):
            kafka.wait_until_settled_sync("g", timeout=0.1)


@pytest.mark.anyio
async def test_blocking_wait_in_an_event_loop_raises():
    with (
        EmbeddedBroker() as kafka,
        pytest.raises(RuntimeError, match="use `await wait_until_settled"),
    ):
        kafka.wait_until_settled_sync("g")


@pytest.mark.anyio
async def test_snapshots_are_taken_from_any_thread():
    async with EmbeddedBroker(topics={"orders": 1}) as kafka:
        kafka.produce("orders", [b"x"])
        (record,) = await anyio.to_thread.run_sync(kafka.records, "orders")
        assert b"x" == record.value
        with pytest.raises(LookupError):
            await anyio.to_thread.run_sync(kafka.group, "g")
        with pytest.raises(TimeoutError):
            await anyio.to_thread.run_sync(
                kafka.wait_until_settled_sync, "g", None, 0.05
            )
