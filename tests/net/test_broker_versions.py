"""Consumers of brokers with older versions, or without share groups."""

import pytest

from sharecons.errors import UnsupportedVersionError
from tests.net.embedded import (
    SlowNetwork,
    consuming,
    limit_versions,
    next_record,
    read_records,
    requests,
    running,
)

pytestmark = pytest.mark.anyio

KAFKA_4_1 = {"ShareFetch": 1, "ShareAcknowledge": 1}


@pytest.mark.parametrize(
    "api", ["ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"]
)
async def test_broker_without_share_groups_raises_immediately(api):
    async with running(1) as broker:
        limit_versions(broker, **{api: None})
        network = SlowNetwork(broker)

        with pytest.raises(UnsupportedVersionError, match=r"127\.0.*:9092.*Kafka 4\.1"):
            async with consuming(broker, network=network):
                pass

        assert [] == requests(broker, "ShareGroupHeartbeat")
        assert 0 == network.open


async def test_record_limit_with_kafka_4_1_raises_immediately():
    async with running(1) as broker:
        limit_versions(broker, **KAFKA_4_1)
        network = SlowNetwork(broker)

        with pytest.raises(UnsupportedVersionError, match="record_limit.*Kafka 4.2"):
            async with consuming(broker, network=network, acquire_mode="record_limit"):
                pass

        assert 0 == network.open


async def test_kafka_4_1_delivers_records():
    async with running(3) as broker:
        limit_versions(broker, **KAFKA_4_1)
        async with consuming(broker) as consumer:
            records = await read_records(consumer, 3)

    assert [0, 1, 2] == [record.offset for record in records]


async def test_renew_with_kafka_4_1_raises():
    async with running(1) as broker:
        limit_versions(broker, **KAFKA_4_1)
        async with consuming(broker) as consumer:
            record = await next_record(consumer)

            with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.2"):
                record.renew()


async def test_disabled_feature_ends_the_consumer_and_names_the_setting():
    async with running(1) as broker:
        heartbeats = broker.faults.on("ShareGroupHeartbeat", times=None)
        heartbeats.refuse("UNSUPPORTED_VERSION")
        async with consuming(broker) as consumer:
            for _ in range(2):
                with pytest.raises(UnsupportedVersionError, match=r"share\.version=1"):
                    await anext(aiter(consumer))

        assert 1 == len(requests(broker, "ShareGroupHeartbeat"))


async def test_leader_without_share_fetch_ends_the_consumer():
    """A cluster in the middle of an upgrade."""
    async with running(brokers=2, partitions=2) as broker:
        broker.produce("orders", [b"a"], partition=1)
        limit_versions(broker, node=2, ShareFetch=None)
        async with consuming(broker) as consumer:
            with pytest.raises(UnsupportedVersionError, match=":9093.*ShareFetch"):
                await anext(aiter(consumer))
