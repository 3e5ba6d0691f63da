"""`release(after=…)`: delays within a lock and beyond it, on both brokers."""

from typing import Final

import anyio
import pytest

from sharecons import AcknowledgeResult, AcknowledgeType
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue, take
from tests.scenarios.versions import since_4_2

pytestmark = [pytest.mark.anyio, ON_BOTH]

RELEASE, RENEW = AcknowledgeType.RELEASE, AcknowledgeType.RENEW
LOCK: Final = 2.0
"""Seconds; the group's lock duration in tests that outlast it."""

SHORT_LOCK: Final = {"share.record.lock.duration.ms": f"{LOCK * 1000:.0f}"}


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


async def test_record_is_delivered_again_after_a_delay_within_its_lock(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"0", b"1"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        first, second = await take(records, 2)
        first.release(after=1.0)
        second.accept()
        start = anyio.current_time()
        (again,) = await take(records, 1)
        waited = round(anyio.current_time() - start, 6)  # of floats
        again.accept()
        results = await consumer.commit()

    assert (0, 2) == (again.offset, again.delivery_count)
    assert 1.0 <= waited < 3.0
    assert {None} == {result.error for result in results}


@since_4_2
async def test_lock_is_renewed_until_another_member_gets_the_record(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin, **SHORT_LOCK)
    queue.produce([b"0"])
    results: list[AcknowledgeResult] = []
    async with (
        queue.consumer(
            acknowledgement="explicit", on_acknowledged=results.extend
        ) as consumer,
        queue.consumer() as other,
    ):
        (record,) = await take(aiter(consumer), 1)
        record.release(after=3 * LOCK)
        consumer.pause(queue.topic)
        start = anyio.current_time()
        (again,) = await take(aiter(other), 1)
        waited = round(anyio.current_time() - start, 6)  # of floats

    assert (0, 2) == (again.offset, again.delivery_count)
    assert 3 * LOCK <= waited < 3 * LOCK + 2.0
    assert {RENEW, RELEASE} == {result.type for result in results}
    assert {None} == {result.error for result in results}


@pytest.mark.client_only
@since_4_2
async def test_lock_is_renewed_after_the_member_unsubscribed(admin: AnyAdmin) -> None:
    queue = Queue(admin, **SHORT_LOCK)
    queue.produce([b"0"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        (record,) = await take(aiter(consumer), 1)
        record.release(after=2 * LOCK)
        start = anyio.current_time()
        consumer.unsubscribe()
        async with queue.consumer() as other:
            (again,) = await take(aiter(other), 1)

    assert 2 * LOCK <= anyio.current_time() - start < 2 * LOCK + 3.0
    assert 2 == again.delivery_count


@since_4_2
async def test_record_is_released_early_if_the_group_allows_no_renewals(
    admin: AnyAdmin,
) -> None:
    queue = Queue(
        admin,
        **{
            "share.record.lock.duration.ms": "3000",
            "share.renew.acknowledge.enable": "false",
        },
    )
    queue.produce([b"0"])
    results: list[AcknowledgeResult] = []
    async with queue.consumer(
        acknowledgement="explicit", on_acknowledged=results.extend
    ) as consumer:
        records = aiter(consumer)
        (record,) = await take(records, 1)
        record.release(after=60.0)
        start = anyio.current_time()
        (again,) = await take(records, 1)

    assert 2.0 <= anyio.current_time() - start < 3.5
    assert 2 == again.delivery_count
    assert (RELEASE, None) in {(result.type, result.error) for result in results}


@pytest.mark.client_only
async def test_closing_releases_a_delayed_record(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"0"])
    results: list[AcknowledgeResult] = []
    async with queue.consumer(
        acknowledgement="explicit", on_acknowledged=results.extend
    ) as consumer:
        (record,) = await take(aiter(consumer), 1)
        record.release(after=3600)
    closed_at = anyio.current_time()
    assert [(RELEASE, None)] == [(each.type, each.error) for each in results]
    async with queue.consumer() as other:
        (again,) = await take(aiter(other), 1)

    assert anyio.current_time() - closed_at < 5.0
    assert 2 == again.delivery_count
