"""Joining a group on a cluster that has received no requests yet."""

import pytest

from sharecons import ShareConsumer
from sharecons.protocol.codes import Code
from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import VERSION, Admin
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.scenarios.raw import RawMember
from tests.scenarios.repeating import repeat

pytestmark = [
    pytest.mark.anyio,
    ON_ASYNCIO,
    pytest.mark.kafka,
    pytest.mark.slow("starts a Kafka cluster"),
]


async def test_group_has_no_coordinator_until_find_coordinator_request() -> None:
    with KafkaCluster(VERSION) as cluster:
        admin = Admin(cluster.bootstrap_servers)
        topic = admin.create_topic(partitions=1)
        async with RawMember(cluster.bootstrap_servers, "fresh") as member:
            for _ in range(10):
                response = await member.heartbeat(0, topic)
                assert response.error in (
                    Code.NOT_COORDINATOR,
                    Code.COORDINATOR_NOT_AVAILABLE,
                )
            await member.find_coordinator()
            await repeat(
                lambda: member.heartbeat(0, topic),
                until=lambda response: response.error == Code.NONE,
            )

        # A consumer can join, although the internal topics were only just created.
        consumer: ShareConsumer = ShareConsumer(
            topic,
            group_id="newcomer",
            bootstrap_servers=cluster.bootstrap_servers,
            auto_offset_reset="earliest",
        )
        admin.produce(topic, [b"x"])
        async with consumer:
            assert (await anext(aiter(consumer))).value == b"x"
