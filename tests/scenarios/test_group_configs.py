"""The delivery limit of a group that changes while a consumer runs."""

import logging

import pytest

from tests.scenarios.embedded_admin import AnyAdmin
from tests.scenarios.queue import Queue, take
from tests.scenarios.versions import since_4_3
from tests.waiting import until

pytestmark = [pytest.mark.anyio, since_4_3]

LIMIT = "share.delivery.count.limit"
ARCHIVED = "sharecons-records-archived-total"


async def test_release_after_the_limit_was_raised_is_not_reported_as_archived(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue(admin, **{LIMIT: "2"})
    queue.produce([b"record"])
    caplog.set_level(logging.WARNING, "sharecons")
    counts = []
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        for delivery in range(1, 5):
            (record,) = await take(records, 1)
            counts.append(record.delivery_count)
            if delivery == 1:
                admin.set_group_config(queue.group, {LIMIT: "4"})
            record.release()
            await consumer.commit()
        await until(lambda: consumer.metrics()[ARCHIVED] == 1)
        assert [] == await take(records, 1, within=1.0)

    assert [1, 2, 3, 4] == counts
    (line,) = [text for text in caplog.messages if "last delivery" in text]
    assert "delivery_limit=4" in line
