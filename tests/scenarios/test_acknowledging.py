"""Acknowledging by offset, and the callback for results, on both brokers."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from sharecons import AcknowledgeResult, AcknowledgeType, ShareConsumer, load_properties
from sharecons.errors import (
    ClosedError,
    ConfigurationError,
    ConsumerStateError,
    DeserializationError,
    LockLostError,
    RecordStateError,
)
from sharecons.net.io.transport import TcpNetwork
from tests.killable_network import KillableNetwork
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue, offsets, remaining_records, take
from tests.scenarios.versions import COUNT_AFTER_CLOSE, since_4_2
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH]

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


@pytest.fixture
def queue(admin: AnyAdmin) -> Queue:
    return Queue(admin)


# Records by their offsets.


async def test_acknowledge_by_offset_is_applied(queue: Queue) -> None:
    queue.produce([b"%d" % i for i in range(4)])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        await take(records, 4)
        consumer.acknowledge(queue.topic, 0, 2, REJECT)
        consumer.acknowledge(queue.topic, 0, 0, ACCEPT)
        consumer.acknowledge(queue.topic, 0, 1, RELEASE)
        (again,) = await take(records, 1)
        consumer.acknowledge(queue.topic, 0, 1, ACCEPT)
        results = await consumer.commit()

    assert (again.offset, again.delivery_count) == (1, 2)
    assert [(r.first_offset, r.type, r.error) for r in results] == [(1, ACCEPT, None)]
    assert offsets(await remaining_records(queue)) == [3]


@since_4_2
async def test_renew_by_offset_extends_the_lock(queue: Queue) -> None:
    queue.produce([b"x"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        (record,) = await take(aiter(consumer), 1)
        before = record.lock_deadline
        await anyio.sleep(0.1)  # real time: the broker's lock gets older
        consumer.acknowledge(queue.topic, 0, 0, RENEW)
        (result,) = await consumer.commit()

        assert result.error is None
        assert record.lock_deadline > before


@pytest.mark.client_only
async def test_record_that_cannot_be_deserialized_is_acknowledged_by_offset(
    queue: Queue,
) -> None:
    queue.produce([b"one", b"2"])
    async with queue.consumer(
        acknowledgement="explicit", value_deserializer=int
    ) as consumer:
        with pytest.raises(DeserializationError) as caught, anyio.fail_after(20):
            await take(aiter(consumer), 1)
        failed = caught.value.record
        consumer.acknowledge(failed.topic, failed.partition, failed.offset, REJECT)
        (record,) = await take(aiter(consumer), 1)
        record.accept()
        results = await consumer.commit()

    assert {r.error for r in results} == {None}
    assert await remaining_records(queue) == []


@pytest.mark.client_only
async def test_acknowledge_by_offset_in_implicit_mode_replaces_the_accept(
    queue: Queue,
) -> None:
    queue.produce([b"0", b"1"])
    async with queue.consumer() as consumer:
        records = aiter(consumer)
        await take(records, 1)
        consumer.acknowledge(queue.topic, 0, 0, RELEASE)
        again = await take(records, 2)

    assert sorted((r.offset, r.delivery_count) for r in again) == [(0, 2), (1, 1)]


@pytest.mark.client_only
@since_4_2
async def test_acknowledge_of_a_record_not_held_raises(queue: Queue) -> None:
    queue.produce([b"0", b"1"])
    async with queue.consumer(
        acknowledgement="explicit", acquire_mode="record_limit", max_records=1
    ) as consumer:
        await take(aiter(consumer), 1)
        for topic, partition, offset in (
            (queue.topic, 0, 1),  # not delivered yet
            (queue.topic, 0, 1000),
            (queue.topic, 1, 0),
            ("another", 0, 0),
        ):
            with pytest.raises(RecordStateError, match="does not hold") as caught:
                consumer.acknowledge(topic, partition, offset, ACCEPT)
            assert f"accept {topic}-{partition}@{offset}" in str(caught.value)


@pytest.mark.client_only
async def test_acknowledge_of_a_settled_record_raises_if_the_type_differs(
    queue: Queue,
) -> None:
    queue.produce([b"0"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        await take(aiter(consumer), 1)
        consumer.acknowledge(queue.topic, 0, 0, REJECT)
        consumer.acknowledge(queue.topic, 0, 0, ACCEPT)  # not sent yet: replaced
        await consumer.commit()
        consumer.acknowledge(queue.topic, 0, 0, ACCEPT)  # no change

        with pytest.raises(RecordStateError, match="settled by accept"):
            consumer.acknowledge(queue.topic, 0, 0, RELEASE)


@pytest.mark.client_only
@pytest.mark.parametrize(
    "arguments",
    [
        ("t", 0, 0, 1),
        ("t", 0, 0, "accept"),
        ("t", -1, 0, ACCEPT),
        ("t", 0, -1, ACCEPT),
        ("t", 0, 1 << 63, ACCEPT),
        ("t", 0, "0", ACCEPT),
        ("", 0, 0, ACCEPT),
        (None, 0, 0, ACCEPT),
    ],
)
async def test_invalid_arguments_of_acknowledge_raise(arguments: Any) -> None:
    consumer = ShareConsumer("orders", group_id="g")

    with pytest.raises(ConfigurationError):
        consumer.acknowledge(*arguments)


@pytest.mark.client_only
async def test_acknowledge_before_start_and_after_close_raises(queue: Queue) -> None:
    queue.produce([b"x"])
    consumer = queue.consumer()
    with pytest.raises(ConsumerStateError, match="not started"):
        consumer.acknowledge(queue.topic, 0, 0, ACCEPT)
    async with consumer:
        await take(aiter(consumer), 1)

    with pytest.raises(ClosedError):
        consumer.acknowledge(queue.topic, 0, 0, ACCEPT)


# The callback.


@pytest.mark.client_only
async def test_callback_that_is_replaced_receives_later_results(queue: Queue) -> None:
    queue.produce([b"%d" % i for i in range(3)])
    first: list[AcknowledgeResult] = []
    second: list[AcknowledgeResult] = []
    async with queue.consumer(
        acknowledgement="explicit", on_acknowledged=first.extend
    ) as consumer:
        records = await take(aiter(consumer), 3)
        for record, callback in zip(records, (None, second.extend, None), strict=True):
            record.accept()
            await consumer.commit()
            consumer.on_acknowledged = callback
            assert consumer.on_acknowledged == callback

    assert [r.first_offset for r in first] == [0]
    assert [r.first_offset for r in second] == [2]


@pytest.mark.client_only
async def test_callback_that_is_set_later_receives_results_without_a_commit(
    queue: Queue,
) -> None:
    queue.produce([b"x"])
    results: list[AcknowledgeResult] = []
    consumer = queue.consumer(acknowledgement="explicit")
    assert consumer.on_acknowledged is None
    async with consumer:
        (record,) = await take(aiter(consumer), 1)
        record.accept()
        consumer.on_acknowledged = results.extend
        await until(lambda: results)

    assert [(r.first_offset, r.error) for r in results] == [(0, None)]


@pytest.mark.client_only
async def test_callback_runs_in_a_task(queue: Queue) -> None:
    """It can use anyio, which needs a task."""
    queue.produce([b"x"])
    tasks = set()

    def acknowledged(results: Any) -> None:
        tasks.add(anyio.get_current_task().id)

    async with queue.consumer(on_acknowledged=acknowledged) as consumer:
        await take(aiter(consumer), 1)
        consumer.acknowledge(queue.topic, 0, 0, ACCEPT)
        await consumer.commit()

    assert tasks
    assert anyio.get_current_task().id not in tasks


@pytest.mark.client_only
async def test_invalid_callback_is_rejected_and_the_old_one_stays() -> None:
    consumer = ShareConsumer("orders", group_id="g", on_acknowledged=print)

    async def later(results: list[AcknowledgeResult]) -> None: ...

    for wrong in (3, later):
        with pytest.raises(ConfigurationError, match="on_acknowledged"):
            consumer.on_acknowledged = wrong  # type: ignore[assignment]
    assert consumer.on_acknowledged is print


async def test_acknowledgements_of_a_lost_connection_fail_as_network_exception(
    queue: Queue,
) -> None:
    queue.produce([b"x"])
    network = KillableNetwork(queue.admin.network or TcpNetwork())
    results: list[AcknowledgeResult] = []
    async with queue.consumer(
        acknowledgement="explicit", network=network, on_acknowledged=results.extend
    ) as consumer:
        records = aiter(consumer)
        (record,) = await take(records, 1)
        record.accept()
        await network.close()
        await until(lambda: results)
        with pytest.raises(LockLostError):
            consumer.acknowledge(queue.topic, 0, 0, RELEASE)
        (again,) = await take(records, 1)

    assert again.delivery_count == COUNT_AFTER_CLOSE
    assert [r.error and (r.error.code, r.error.name) for r in results] == [
        (13, "NETWORK_EXCEPTION")
    ]


# The settings of a file.


@pytest.mark.client_only
async def test_consumer_from_a_properties_file_consumes_with_its_settings(
    queue: Queue, tmp_path: Path
) -> None:
    queue.produce([b"x"])
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={queue.admin.bootstrap_servers}\ngroup.id={queue.group}\n"
        "share.acknowledgement.mode=explicit\nfetch.max.wait.ms=200\n"
    )
    async with ShareConsumer(
        queue.topic,
        value_deserializer=bytes.decode,
        **load_properties(file, network=queue.admin.network),
    ) as consumer:
        (record,) = await take(aiter(consumer), 1)

    assert record.value == "x"
    assert offsets(await remaining_records(queue)) == [0], "explicit"


# The lock duration.


async def test_lock_duration_is_that_of_the_group(admin: AnyAdmin) -> None:
    queue = Queue(admin, **{"share.record.lock.duration.ms": "20000"})
    queue.produce([b"x"])
    consumer = queue.consumer()
    assert consumer.lock_duration is None
    async with consumer:
        assert consumer.lock_duration is None
        await take(aiter(consumer), 1)

        assert consumer.lock_duration == 20.0
