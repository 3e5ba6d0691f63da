"""Fetches that request few bytes receive records of all sizes."""

from collections import Counter
from typing import Final

import anyio
import pytest

from sharecons.testing.broker.codec import decode_request
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue
from tests.scenarios.watched import WatchedNetwork

pytestmark = [pytest.mark.anyio, ON_BOTH]


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


SMALL: Final = 20_000
LARGE: Final = 200
MAX_BYTES: Final = 8 << 20  # the default


def requested_bytes(network: WatchedNetwork) -> list[int]:
    """Return the `max_bytes` of each fetch that can acquire records."""
    requests = [decode_request(data[4:])[1] for data in network.sent]
    sizes = [getattr(each, "max_bytes", 0) for each in requests]
    return [size for size in sizes if size]


async def test_records_of_different_sizes_and_released_ones_are_received(
    admin: AnyAdmin,
) -> None:
    """Records of 100 bytes are followed by records of 20 KiB in another partition."""
    queue = Queue(admin, partitions=2)
    queue.produce([b"x" * 100] * SMALL, partition=0)
    network = WatchedNetwork(admin.network)
    accepted: Counter[tuple[int, int]] = Counter()
    has_large = False

    with anyio.fail_after(60):
        async with queue.consumer(network=network) as consumer:
            async for record in consumer:
                if record.offset % 7 == 0 and record.delivery_count == 1:
                    record.release()
                else:
                    accepted[record.partition, record.offset] += 1
                if len(accepted) == SMALL // 2 and not has_large:
                    # Not before: fetches request few bytes for small records.
                    queue.produce([b"x" * 20_480] * LARGE, partition=1)
                    has_large = True
                if len(accepted) == SMALL + LARGE:
                    break

    expected = {(0, n) for n in range(SMALL)} | {(1, n) for n in range(LARGE)}
    assert expected == set(accepted)
    assert {1} == set(accepted.values())
    assert min(requested_bytes(network)) < MAX_BYTES // 4
