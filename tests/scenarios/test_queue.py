"""The helpers of `queue`, on both brokers."""

import pytest

from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue, offsets, remaining_records

pytestmark = [pytest.mark.anyio, ON_BOTH]


async def test_remaining_records_are_returned_once_even_if_their_locks_end(
    any_admin: AnyAdmin,
) -> None:
    queue = Queue(any_admin, **{"share.record.lock.duration.ms": "1000"})
    queue.produce([b"0", b"1"])

    found = await remaining_records(queue)

    assert [0, 1] == offsets(found)
    assert {1} == {record.delivery_count for record in found}
