"""A group id that belongs to a group of another type, on Kafka as well."""

import pytest

from sharecons import ShareConsumer, ShareGroupAdmin, TopicPartition
from sharecons.errors import GroupError
from tests.scenarios.embedded_admin import AnyAdmin

pytestmark = pytest.mark.anyio


async def test_group_of_another_type_is_an_error_and_gets_no_config(
    admin: AnyAdmin,
) -> None:
    topic = admin.create_topic()
    where = {"bootstrap_servers": admin.bootstrap_servers, "network": admin.network}
    consumer = ShareConsumer(
        topic, group_id=topic, auto_offset_reset="earliest", **where
    )
    async with ShareGroupAdmin(**where) as client:
        offsets = {TopicPartition(topic, 0): 0}
        (await client.alter_consumer_group_offsets(topic, offsets)).check()

        with pytest.raises(GroupError, match="not a share group"):
            async with consumer:
                pass

        configs = (await client.describe_group_configs(topic))[topic].value
        assert "earliest" != configs["share.auto.offset.reset"].value
