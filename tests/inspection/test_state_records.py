"""The records of `__share_group_state`, on both Kafkas."""

import pytest

from sharecons._record import TopicPartition
from sharecons.admin import state_replay
from sharecons.testing.broker.share import state_records
from tests.scenarios.queue import Queue, take

pytestmark = [pytest.mark.anyio, pytest.mark.slow("records are read in real time")]


async def worked_queue(kafka):
    """Five records: accepted, rejected, released, and two that are not settled."""
    queue = Queue(kafka.admin)
    queue.produce([b"%d" % number for number in range(5)])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        first, second, third, fourth = await take(aiter(consumer), 4)
        second.accept()
        third.reject()
        fourth.release()
        await consumer.commit(timeout=10)
        assert first.offset == 0
    return queue


async def test_records_have_the_state_of_the_coordinator(kafka, admin):
    queue = await worked_queue(kafka)
    key = TopicPartition(queue.topic, 0)

    recorded = (await admin.read_state_records(queue.group))[key].value
    read = (await admin.read_state(queue.group))[key].value

    assert read.start_offset == recorded.state.start_offset == 0
    assert read.batches == recorded.state.batches
    assert len(read.batches) >= 2


async def test_deleted_group_has_no_state_in_the_records(kafka, admin):
    queue = await worked_queue(kafka)
    key = TopicPartition(queue.topic, 0)
    assert (await admin.read_state_records(queue.group, [key]))[key].value
    assert (await admin.delete_share_groups(queue.group))[queue.group].ok

    assert (await admin.read_state_records(queue.group, [key]))[key].value is None


@pytest.mark.parametrize(
    "key", ["g:AAAAAAAAAAAAAAAAAAAAAQ:0", "größe:x:1", "😀:x:2", ""]
)
@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_key_has_the_same_partition_for_client_and_broker(key, partitions):
    assert state_replay.state_partition_of(
        key, partitions
    ) == state_records.state_partition_of(key, partitions)
