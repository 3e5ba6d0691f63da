"""Consuming with a share group, on both brokers."""

import pickle
from typing import Any

import anyio
import pytest

from sharecons import AcknowledgeType, ShareConsumer, TimestampType
from sharecons.errors import ClosedError, DeserializationError, RecordStateError
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue, offsets, remaining_records, take
from tests.scenarios.versions import COUNT_AFTER_CLOSE, since_4_2, since_4_3
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH]


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


async def test_records_have_all_produced_fields(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    headers = [("a", b"1"), ("a", None), ("ä", b"")]
    queue.produce([b"value"], keys=[b"key"], headers=headers)
    queue.produce([None, b""])
    async with queue.consumer() as consumer:
        full, null, empty = await take(aiter(consumer), 3)

    assert (full.key, full.value) == (b"key", b"value")
    assert full.headers == (("a", b"1"), ("a", None), ("ä", b""))
    assert full.timestamp > 1_700_000_000_000
    assert full.timestamp_type is TimestampType.CREATE_TIME
    assert full.delivery_count == 1
    assert (null.key, null.value, empty.value) == (None, None, b"")
    assert offsets([full, null, empty]) == [0, 1, 2]


async def test_first_record_arrives_within_seconds_of_joining(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    began = anyio.current_time()
    async with queue.consumer() as consumer:
        await take(aiter(consumer), 1)
        seconds = anyio.current_time() - began

    assert seconds < 2.5, "less than the heartbeat interval of 5 s"


async def test_requesting_next_record_accepts_previous(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(10)])
    async with queue.consumer() as consumer:
        await take(aiter(consumer), 10)
    again = await remaining_records(queue)

    assert offsets(again) == [9], "the last record was not followed by another request"
    assert again[0].delivery_count == COUNT_AFTER_CLOSE


@pytest.mark.client_only
@pytest.mark.parametrize("way", ["break", "exception", "cancel"])
async def test_leaving_loop_does_not_accept_current_record(
    admin: AnyAdmin, way: str
) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(4)])
    async with queue.consumer() as consumer:
        with anyio.CancelScope() as scope:
            try:
                async for record in consumer:
                    if record.offset == 1:
                        if way == "break":
                            break
                        if way == "exception":
                            raise LookupError(way)
                        scope.cancel()
                        await anyio.sleep_forever()
            except LookupError:
                pass
        rest = await take(aiter(consumer), 3)

    assert sorted((r.offset, r.delivery_count) for r in rest) == [
        (1, 2),
        (2, 1),
        (3, 1),
    ]


async def test_close_after_handler_error_releases_current_record(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    with pytest.raises(LookupError):  # noqa: PT012
        async with queue.consumer() as consumer:
            async for _ in consumer:
                raise LookupError("the handler failed")

    assert [(r.offset, r.delivery_count) for r in await remaining_records(queue)] == [
        (0, COUNT_AFTER_CLOSE)
    ]


async def test_explicit_acknowledgements_are_applied(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(4)])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        accepted, released, rejected, nothing = await take(records, 4)
        accepted.accept()
        released.release()
        rejected.reject()
        (again,) = await take(records, 1)
        results = await consumer.commit()

        assert (again.offset, again.delivery_count) == (1, 2)
        assert all(result.error is None for result in results)
        again.accept()

    over = await remaining_records(queue)
    assert [(r.offset, r.delivery_count) for r in over] == [
        (nothing.offset, COUNT_AFTER_CLOSE)
    ]


@pytest.mark.client_only
async def test_explicit_mode_fetches_while_records_are_unacknowledged(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        for i in range(3):
            queue.produce([b"%d" % i])
            assert offsets(await take(records, 1)) == [i]


async def test_commit_returns_result_of_each_range(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(6)])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = await take(aiter(consumer), 6)
        for record in records[:3]:
            record.accept()
        records[4].reject()
        results = sorted(await consumer.commit())
        nothing = await consumer.commit()

    accept, reject = AcknowledgeType.ACCEPT, AcknowledgeType.REJECT
    assert [(r.first_offset, r.last_offset, r.type, r.error) for r in results] == [
        (0, 2, accept, None),
        (4, 4, reject, None),
    ]
    assert nothing == []


@pytest.mark.client_only
async def test_acknowledgements_are_sent_without_commit(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    results: list[Any] = []
    consumer = queue.consumer(
        acknowledgement="explicit", on_acknowledged=results.extend
    )
    async with consumer:
        (record,) = await take(aiter(consumer), 1)
        record.accept()
        await until(lambda: results, within=2)

        assert [(r.first_offset, r.error) for r in results] == [(0, None)]


@pytest.mark.client_only
async def test_slow_handler_does_not_delay_earlier_acknowledgements(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(50)])
    results: list[Any] = []

    def last_acknowledged() -> int:
        return max((r.last_offset for r in results), default=-1)

    async with queue.consumer(on_acknowledged=results.extend) as consumer:
        async for record in consumer:
            if record.offset == 40:
                await until(lambda: last_acknowledged() >= 39)
                break

        assert last_acknowledged() == 39


@pytest.mark.client_only
async def test_repeated_acknowledgement_is_ignored_and_different_one_raises(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"x", b"y"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        one, other = await take(aiter(consumer), 2)
        one.release()
        one.accept()
        one.accept()
        await consumer.commit()
        one.accept()

        with pytest.raises(RecordStateError, match="settled by accept"):
            one.release()
        other.accept()

    with pytest.raises(ClosedError):
        other.accept()
    assert await remaining_records(queue) == []


@pytest.mark.client_only
async def test_record_is_acknowledged_by_its_own_consumer_only(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        (record,) = await take(aiter(consumer), 1)
        async with queue.consumer(acknowledgement="explicit") as other:
            with pytest.raises(RecordStateError, match="a copy"):
                pickle.loads(pickle.dumps(record)).accept()
            record.accept()

            assert await other.commit() == []
            assert [r.error for r in await consumer.commit()] == [None]


async def test_late_acknowledgement_fails_without_affecting_new_owner(
    admin: AnyAdmin,
) -> None:
    # Long enough that the other consumer's locks do not expire on a busy machine.
    queue = Queue(admin, **{"share.record.lock.duration.ms": "3000"})
    queue.produce([b"x", b"y"])
    async with queue.consumer(acknowledgement="explicit") as slow:
        late = await take(aiter(slow), 2)
        async with queue.consumer(acknowledgement="explicit") as other:
            taken_over = await take(aiter(other), 2, within=10)
            for record in late:
                record.accept()
            results = await slow.commit()
            for record in taken_over:
                record.accept()
            good = await other.commit()

    assert [r.delivery_count for r in taken_over] == [2, 2]
    assert {r.error.name for r in results if r.error} == {"INVALID_RECORD_STATE"}
    assert [r.error for r in good] == [None]
    assert await remaining_records(queue) == []


@since_4_2
async def test_renew_extends_lock_beyond_its_duration(admin: AnyAdmin) -> None:
    queue = Queue(admin, **{"share.record.lock.duration.ms": "1500"})
    queue.produce([b"x"])
    async with (
        queue.consumer(acknowledgement="explicit") as consumer,
        queue.consumer() as other,
    ):
        (record,) = await take(aiter(consumer), 1)
        before = record.lock_deadline
        for _ in range(3):
            await anyio.sleep(0.6)  # real time: the broker's lock gets older
            record.renew()
            assert [r.error for r in await consumer.commit()] == [None]
            assert 0.5 < record.lock_remaining < 1.501
        assert record.lock_deadline > before + 1.5
        record.accept()
        assert [r.error for r in await consumer.commit()] == [None]

        assert await take(aiter(other), 1, within=1.7) == []


async def test_batch_is_acknowledged_with_one_call(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(300)])
    seen = 0
    async with queue.consumer(acknowledgement="explicit") as consumer:
        async for batch in consumer.batches():
            assert {record.partition for record in batch} == {batch.partition}
            seen += len(batch)
            batch[0].reject()
            batch.accept()
            if seen == 300:
                break
        results = await consumer.commit()

    assert all(result.error is None for result in results)
    assert await remaining_records(queue) == []


@pytest.mark.client_only
async def test_requesting_next_batch_accepts_previous(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(20)])
    sizes = []
    async with queue.consumer() as consumer:
        async for batch in consumer.batches():
            sizes.append(len(batch))
            if sum(sizes) == 20:
                break

    assert len(await remaining_records(queue)) == sizes[-1]


@pytest.mark.client_only
async def test_poll_returns_available_records(admin: AnyAdmin) -> None:
    queue = Queue(admin, partitions=2)
    async with queue.consumer() as consumer:
        assert await consumer.poll() == []
        assert await consumer.poll(timeout=0.1) == []
        queue.produce([b"%d" % i for i in range(100)])
        seen = []
        with anyio.fail_after(20):
            while len(seen) < 100:
                records = await consumer.poll(timeout=0, max_records=7)
                records = records or await consumer.poll(timeout=0.1, max_records=7)
                assert len(records) <= 7
                seen += records
        await consumer.poll(timeout=0)
        assert all(r.error is None for r in await consumer.commit())

    assert sorted(int(r.value) for r in seen) == list(range(100))
    assert await remaining_records(queue) == []


@pytest.mark.client_only
async def test_cancelled_poll_loses_no_record(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    seen = []
    async with queue.consumer() as consumer:
        for i in range(20):
            with anyio.move_on_after(0.02 * (i % 3)):
                seen += await consumer.poll(timeout=10)
            if i % 4 == 0:
                queue.produce([b"x"])
        seen += [r for _ in range(10) for r in await consumer.poll(timeout=0.2)]

    assert sorted(offsets(seen)) == [0, 1, 2, 3, 4]
    assert {record.delivery_count for record in seen} == {1}


@pytest.mark.client_only
async def test_deserializer_error_affects_only_its_record(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"1", b"2", b"three", b"4"])
    values: list[Any] = []
    failed: list[Any] = []
    async with queue.consumer(value_deserializer=int) as consumer:
        with anyio.fail_after(20):
            while len(values) < 3 or len(failed) < 2:
                try:
                    async for record in consumer:
                        values.append(record.value)
                        if len(values) == 3 and len(failed) == 2:
                            break
                except DeserializationError as error:
                    failed.append(error.record)
                    if len(failed) == 2:
                        error.record.reject()

    assert sorted(values) == [1, 2, 4]
    assert {record.value for record in failed} == {b"three"}
    assert [record.delivery_count for record in failed] == [1, 2], "released first"
    assert b"three" not in [r.value for r in await remaining_records(queue)]


async def test_subscription_can_change_to_other_topics_and_back(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    other = admin.create_topic(partitions=1)
    queue.produce([b"first"])
    admin.produce(other, [b"other"])
    async with queue.consumer() as consumer:
        (one,) = await take(aiter(consumer), 1)
        one.accept()
        consumer.subscribe(other)
        (two,) = await take(aiter(consumer), 1)
        two.accept()
        consumer.unsubscribe()
        await until(lambda: consumer.assignment == frozenset(), within=1)
        consumer.subscribe(queue.topic, other)
        queue.produce([b"second"])
        (three,) = await take(aiter(consumer), 1)

    assert [r.value for r in (one, two, three)] == [b"first", b"other", b"second"]


@since_4_2
async def test_two_consumers_share_one_partition(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    consumed: dict[str, list[int]] = {"a": [], "b": []}
    values = [b"%d" % i for i in range(600)]
    async with queue.consumer() as a, queue.consumer() as b:
        async with anyio.create_task_group() as tasks:

            async def work(name: str, consumer: ShareConsumer) -> None:
                async for record in consumer:
                    consumed[name].append(record.offset)
                    await anyio.sleep(0.002)  # real time: the handler's work

            tasks.start_soon(work, "a", a)
            tasks.start_soon(work, "b", b)
            await until(lambda: a.assignment and b.assignment)
            queue.produce(values)
            await until(lambda: sum(map(len, consumed.values())) >= 600, within=20)
            tasks.cancel_scope.cancel()

    assert sorted(consumed["a"] + consumed["b"]) == list(range(600))
    assert min(map(len, consumed.values())) > 50, "both received records"


async def test_groups_consume_independently(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    admin.set_group_config(
        "another-" + queue.group, {"share.auto.offset.reset": "earliest"}
    )
    async with queue.consumer() as one:
        another = ShareConsumer(
            queue.topic,
            group_id="another-" + queue.group,
            bootstrap_servers=admin.bootstrap_servers,
            network=admin.network,
        )
        async with another:
            assert len(await take(aiter(one), 1)) == 1
            assert len(await take(aiter(another), 1)) == 1


async def test_auto_offset_reset_is_set_before_joining(admin: AnyAdmin) -> None:
    topic = admin.create_topic(partitions=1)
    admin.produce(topic, [b"before"])
    consumer: ShareConsumer = ShareConsumer(
        topic,
        group_id=f"new-{topic}",
        bootstrap_servers=admin.bootstrap_servers,
        network=admin.network,
        auto_offset_reset="earliest",
    )
    async with consumer:
        assert [r.value for r in await take(aiter(consumer), 1)] == [b"before"]


@since_4_2
async def test_record_limit_mode_never_exceeds_max_records(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(200)])
    consumer = queue.consumer(
        acquire_mode="record_limit", max_records=5, acknowledgement="explicit"
    )
    async with consumer:
        async for batch in consumer.batches():
            assert len(batch) <= 5
            batch.accept()
            if batch[-1].offset == 199:
                break


@since_4_2
async def test_reopened_consumers_use_deliveries_of_processed_record_only(
    admin: AnyAdmin,
) -> None:
    """The handler receives one record each time; only that record is fetched."""
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(2000)])
    delivered = []
    for turn in range(10):
        async with queue.consumer() as consumer:
            if turn % 2:
                continue  # no fetch
            async for record in consumer:
                delivered.append((record.offset, record.delivery_count))
                break
        assert consumer.metrics()["records-fetched-total"] <= 1, (
            "no record was prefetched"
        )

    # The first record was delivered five times, which is the limit. No other record
    # was ever released.
    assert delivered == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    rest = await remaining_records(queue)
    assert {record.delivery_count for record in rest} == {1}
    assert offsets(rest) == list(range(1, 2000))


# Members of one group with different settings.


@pytest.mark.client_only
async def test_members_with_different_acknowledgement_modes_share_a_group(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin, partitions=2)
    for partition in (0, 1):
        queue.produce([b"x"] * 20, partition=partition)
    seen: list[tuple[int, int]] = []

    async def read(consumer: ShareConsumer[Any, Any], explicit: bool) -> None:
        async for record in consumer:
            assert record.delivery_count == 1
            if explicit:
                record.accept()
            seen.append((record.partition, record.offset))

    async with (
        queue.consumer(max_records=1) as implicit,
        queue.consumer(acknowledgement="explicit", max_records=1) as explicit,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(read, implicit, False)
        tasks.start_soon(read, explicit, True)
        await until(lambda: len(seen) == 40, within=30)
        tasks.cancel_scope.cancel()

    assert len(set(seen)) == 40
    assert len(await remaining_records(queue)) <= 1, "the last implicit record"


@since_4_2
async def test_members_with_overlapping_topics_receive_only_their_topics(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    common, own, other = queue.topic, admin.create_topic(), admin.create_topic()
    async with queue.consumer() as first, queue.consumer() as second:
        first.subscribe(common, own)
        second.subscribe(common, other)
        await until(lambda: len(first.assignment) == 2 == len(second.assignment))
        topics: dict[str, set[str]] = {"first": set(), "second": set()}

        async def read(name: str, consumer: ShareConsumer[Any, Any]) -> None:
            async for record in consumer:
                topics[name].add(record.topic)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, "first", first)
            tasks.start_soon(read, "second", second)
            for topic in (common, own, other):
                admin.produce(topic, [b"x"] * 10)
            await until(lambda: own in topics["first"] and other in topics["second"])
            await until(lambda: common in topics["first"] | topics["second"])
            tasks.cancel_scope.cancel()

    assert topics["first"] <= {common, own}
    assert topics["second"] <= {common, other}


# Limits of fetches.


@pytest.mark.parametrize(
    "limits", [{"max_bytes": 1}, {"min_bytes": 0}, {"min_bytes": 0x7FFFFFFF}]
)
async def test_extreme_fetch_limits_deliver_all_records(
    admin: AnyAdmin, limits: dict[str, Any]
) -> None:
    queue = Queue(admin)
    for _ in range(3):
        queue.produce([b"x" * 100_000])
    async with queue.consumer(**limits) as consumer:
        records = await take(aiter(consumer), 3)

    assert [len(record.value) for record in records] == [100_000] * 3
    assert {record.delivery_count for record in records} == {1}


# Results of acknowledgements.


@pytest.mark.client_only
async def test_callback_has_the_results_before_commit_returns(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"0", b"1"])
    results: list[Any] = []
    async with queue.consumer(
        acknowledgement="explicit", on_acknowledged=results.extend
    ) as consumer:
        for record in await take(aiter(consumer), 2):
            record.accept()
        committed = await consumer.commit()

        assert committed
        assert sum(r.last_offset - r.first_offset + 1 for r in results) == 2


@pytest.mark.client_only
@pytest.mark.parametrize("mode", ["implicit", "explicit"])
async def test_callback_has_the_last_results_before_aclose_returns(
    admin: AnyAdmin, mode: str
) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(3)])
    results: list[Any] = []
    async with queue.consumer(
        acknowledgement=mode, on_acknowledged=results.extend
    ) as consumer:
        records = await take(aiter(consumer), 3)
        if mode == "explicit":
            for record in records[:2]:
                record.accept()
        await consumer.aclose()

        accepted = [r for r in results if r.type is AcknowledgeType.ACCEPT]
        assert sum(r.last_offset - r.first_offset + 1 for r in accepted) == 2
        assert {r.error for r in accepted} == {None}


@pytest.mark.parametrize("unsubscribe", [True, False])
async def test_records_are_acknowledged_after_the_subscription_changed(
    admin: AnyAdmin, unsubscribe: bool
) -> None:
    queue = Queue(admin)
    other = admin.create_topic()
    queue.produce([b"x"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        (record,) = await take(aiter(consumer), 1)
        consumer.subscribe(() if unsubscribe else other)
        record.accept()
        results = await consumer.commit(timeout=10)
        consumer.subscribe(queue.topic)
        queue.produce([b"y"])
        (later,) = await take(aiter(consumer), 1)

    assert [result.error for result in results] == [None]
    assert later.value == b"y"


@since_4_3
async def test_renewal_that_the_group_does_not_allow_fails(admin: AnyAdmin) -> None:
    queue = Queue(admin, **{"share.renew.acknowledge.enable": "false"})
    queue.produce([b"x"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        (record,) = await take(aiter(consumer), 1)
        record.renew()
        (renewed,) = await consumer.commit()
        assert renewed.error is not None
        assert renewed.error.name == "INVALID_RECORD_STATE"
        record.accept()
        (accepted,) = await consumer.commit()

    assert accepted.error is None


# Closed consumers.


@pytest.mark.client_only
async def test_calls_of_a_closed_consumer_raise_and_closing_again_does_nothing(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    async with queue.consumer() as consumer:
        await consumer.aclose()
        await consumer.aclose()
        for call in (
            consumer.poll,
            consumer.commit,
            lambda: consumer.subscribe(queue.topic),
            consumer.unsubscribe,
            lambda: aiter(consumer),
            consumer.batches,
        ):
            with pytest.raises(ClosedError):
                await call()  # type: ignore[operation]


@pytest.mark.client_only
@pytest.mark.parametrize("topics", [[], ["orders"]])
async def test_consumer_closed_right_after_it_subscribed_closes_at_once(
    admin: AnyAdmin, topics: list[str]
) -> None:
    queue = Queue(admin)
    async with queue.consumer() as consumer:
        consumer.unsubscribe()
        consumer.subscribe(topics)
        began = anyio.current_time()
        await consumer.aclose()

        assert anyio.current_time() - began < 2.0
