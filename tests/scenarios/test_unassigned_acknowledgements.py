"""Acknowledgements of partitions that a member no longer fetches, on both brokers.

A ShareFetch that carries one adds its partition to the share session (KIP-932). The
member has to forget it in the same request, or the broker would go on to deliver the
partition to a member that does not read it.
"""

import pytest

from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue, take

pytestmark = [pytest.mark.anyio, ON_BOTH]

BACKLOG = 2_000


async def test_record_released_after_unsubscribing_goes_to_another_member(
    any_admin: AnyAdmin,
) -> None:
    queue = Queue(any_admin)
    other = any_admin.create_topic(partitions=1)
    queue.produce([b"one"])
    any_admin.produce(other, [b"%d" % number for number in range(BACKLOG)])
    async with queue.consumer(acknowledgement="explicit", max_records=100) as consumer:
        (record,) = await take(aiter(consumer), 1)
        consumer.subscribe(other)
        # With a backlog, the next fetch carries acknowledgements.
        for number in range(BACKLOG):
            (each,) = await take(aiter(consumer), 1)
            assert other == each.topic
            each.accept()
            if number == BACKLOG // 2:
                record.release()
        async with queue.consumer() as second:
            (again,) = await take(aiter(second), 1)

    assert (b"one", 2) == (again.value, again.delivery_count)
