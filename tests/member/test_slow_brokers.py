"""Several brokers of which one is slow, full or gone: the others are not held up."""

import anyio
import pytest

from sharecons.errors import CommitTimeoutError
from tests.net.embedded import (
    accepted,
    consuming,
    next_record,
    read_records,
    requests,
    running,
)

pytestmark = pytest.mark.anyio

FETCH = "ShareFetch"
ACKNOWLEDGE = "ShareAcknowledge"

CLIENT_APIS = {
    "ApiVersions",
    "DescribeConfigs",
    "DescribeShareGroupOffsets",
    "FindCoordinator",
    "ListOffsets",
    "Metadata",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupHeartbeat",
}


def produce_to_both(broker, count=1):
    for partition in (0, 1):
        broker.produce("orders", [b"x"] * count, partition=partition)


async def test_slow_broker_does_not_delay_records_of_another():
    async with running(brokers=2, partitions=2) as broker:
        slow = broker.faults.on(FETCH, node=2, times=None).stall()
        async with consuming(broker) as consumer:
            assert await next_record(consumer, within=1) is None
            produce_to_both(broker)
            began = anyio.current_time()
            (record,) = await consumer.poll(timeout=10)
            assert anyio.current_time() - began < 0.1
            assert 0 == record.partition
            slow.undo()
            (record,) = await consumer.poll(timeout=60)

            assert 1 == record.partition


async def test_full_session_cache_of_one_broker_does_not_stop_another():
    async with running(brokers=2, partitions=2) as broker:
        full = broker.faults.on(FETCH, node=2, times=None)
        fault = full.refuse("SHARE_SESSION_LIMIT_REACHED")
        async with consuming(broker, acknowledgement="explicit") as consumer:
            produce_to_both(broker, 5)
            records = await read_records(consumer, 5)
            assert {0} == {record.partition for record in records}
            assert await next_record(consumer, within=5) is None
            fault.undo()

            assert 1 == (await next_record(consumer)).partition


async def test_commit_has_one_request_per_broker_and_waits_for_the_slowest():
    results = []
    async with running(brokers=2, partitions=2) as broker:
        produce_to_both(broker, 3)
        async with consuming(
            broker, acknowledgement="explicit", on_acknowledged=results.extend
        ) as consumer:
            records = await read_records(consumer, 6)
            await anyio.sleep(1)
            broker.faults.on(ACKNOWLEDGE, node=2, times=None).delay(5.0)
            began = anyio.current_time()
            for record in records:
                record.accept()
            with pytest.raises(CommitTimeoutError):
                await consumer.commit(timeout=2.0)
            assert {0} == {result.partition for result in results}
            await consumer.commit()
            assert 5.0 == pytest.approx(anyio.current_time() - began, abs=0.1)
            sent = requests(broker, ACKNOWLEDGE, since=began)

        assert [1, 2] == sorted(each.node_id for each in sent)[:2]
        assert {(0, None), (1, None)} == {(r.partition, r.error) for r in results}


@pytest.mark.parametrize("call", ["commit", "poll", "aclose"])
async def test_broker_that_goes_with_an_acknowledgement_in_flight_holds_nothing_up(
    call,
):
    results = []
    async with running(1, brokers=2) as broker:
        async with consuming(
            broker, acknowledgement="explicit", on_acknowledged=results.extend
        ) as consumer:
            record = await next_record(consumer)
            broker.move_coordinator("billing", to=2)
            broker.faults.on(ACKNOWLEDGE, node=1, times=None).stall()
            record.accept()
            await anyio.sleep(0.2)
            broker.stop_broker(1)
            began = anyio.current_time()
            if call == "commit":
                await consumer.commit()
            elif call == "poll":
                (again,) = await consumer.poll(timeout=30)
                assert 0 == again.offset
            else:
                await consumer.aclose()

            assert anyio.current_time() - began < 5
        assert ["NETWORK_EXCEPTION"] == [each.error.name for each in results]


async def test_consumer_sends_no_requests_of_classic_groups():
    async with running(5) as broker:
        async with consuming(
            broker, auto_offset_reset="earliest", acknowledgement="explicit"
        ) as consumer:
            for record in await read_records(consumer, 5):
                record.accept()
            await consumer.commit()
            sent = {each.api for each in broker.requests}

        assert sent <= CLIENT_APIS
        assert 5 == accepted(broker)
