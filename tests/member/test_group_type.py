"""A group id that belongs to a group of another type."""

import pytest

from sharecons import ShareConsumer, ShareGroupAdmin, ShareWorker, TopicPartition
from sharecons.errors import GroupError
from sharecons.protocol.codes import Code
from tests.net.embedded import next_record, running
from tests.worker.working import Handled

pytestmark = pytest.mark.anyio

RESET = "share.auto.offset.reset"


def new_consumer(broker, group_id, **options):
    return ShareConsumer(
        "orders",
        group_id=group_id,
        bootstrap_servers=broker.brokers[1],
        network=broker.network,
        **options,
    )


async def create_classic_group(broker, group_id):
    async with ShareGroupAdmin(
        bootstrap_servers=broker.brokers[1], network=broker.network
    ) as admin:
        offsets = {TopicPartition("orders", 0): 0}
        (await admin.alter_consumer_group_offsets(group_id, offsets)).check()


@pytest.mark.parametrize("coordinator", [1, 2])
async def test_group_of_another_type_is_an_error_and_gets_no_config(coordinator):
    async with running(1, brokers=2) as broker:
        broker.move_coordinator("classic", to=coordinator)
        await create_classic_group(broker, "classic")
        consumer = new_consumer(broker, "classic", auto_offset_reset="earliest")

        with pytest.raises(GroupError, match="not a share group.*another group_id"):
            async with consumer:
                pass

        assert RESET not in broker.cluster.configs.group_config("classic")


async def test_worker_of_a_group_of_another_type_leaves_no_config():
    async with running(1) as broker:
        await create_classic_group(broker, "classic")

        with pytest.raises(GroupError):
            await ShareWorker(
                "orders",
                Handled(),
                group_id="classic",
                bootstrap_servers=broker.brokers[1],
                network=broker.network,
            ).run()

        assert RESET not in broker.cluster.configs.group_config("classic")


@pytest.mark.parametrize("coordinator", [1, 2])
async def test_new_group_gets_its_config(coordinator):
    async with running(1, brokers=2) as broker:
        broker.move_coordinator("new", to=coordinator)
        async with new_consumer(
            broker, "new", auto_offset_reset="earliest"
        ) as consumer:
            assert await next_record(consumer) is not None

        assert "earliest" == broker.cluster.configs.group_config("new")[RESET]


@pytest.mark.parametrize(
    "code", [Code.GROUP_AUTHORIZATION_FAILED, Code.UNKNOWN_SERVER_ERROR]
)
async def test_type_that_cannot_be_read_is_no_error(code):
    async with running(1) as broker:
        broker.faults.on("ShareGroupDescribe", times=None).refuse(code)
        async with new_consumer(
            broker, "new", auto_offset_reset="earliest"
        ) as consumer:
            assert await next_record(consumer) is not None
