"""Inspection without CLUSTER_ACTION: from records, or with a clear error."""

import pytest

from sharecons import ShareConsumer
from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.errors import AuthorizationError
from sharecons.inspection import OffsetStatus, StateSource, inspect_group
from sharecons.testing import EmbeddedBroker
from tests.scenarios.queue import take

pytestmark = [pytest.mark.anyio, pytest.mark.slow("records are read in real time")]

STATES = "__share_group_state"


@pytest.fixture
async def broker():
    async with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
async def admin(broker):
    async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


def forbid(broker, *denied):
    access = broker.cluster.authorizer
    denies = access.denies
    access.denies = lambda operation, kind, name: (
        (operation, name) in denied or denies(operation, kind, name)
    )


CLUSTER_ACTION = ("CLUSTER_ACTION", "kafka-cluster")


async def a_group(broker, admin):
    """Five records of a group, two of them acknowledged."""
    broker.create_topic("orders")
    broker.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
    broker.produce("orders", ["x"] * 5)
    async with ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        acknowledgement="explicit",
    ) as consumer:
        for record in await take(aiter(consumer), 3):
            if record.offset:
                record.accept()
        await consumer.commit(timeout=10)


async def test_without_cluster_action_the_records_are_read(broker, admin):
    await a_group(broker, admin)
    forbid(broker, CLUSTER_ACTION)
    inspection = await inspect_group(admin, "billing")

    assert inspection.source is StateSource.RECORDS
    inside = inspection.partitions[TopicPartition("orders", 0)].value
    assert [
        (0, 0, OffsetStatus.OPEN, 1),
        (1, 2, OffsetStatus.ACKNOWLEDGED, 1),
        (3, 4, OffsetStatus.OPEN, 1),
    ] == [
        (each.first_offset, each.last_offset, each.status, each.delivery_count)
        for each in inside.ranges
    ]
    assert inside.last_written is not None


async def test_without_either_permission_the_error_names_both(broker, admin):
    await a_group(broker, admin)
    forbid(broker, CLUSTER_ACTION, ("READ", STATES), ("DESCRIBE", STATES))
    with pytest.raises(AuthorizationError) as caught:
        await inspect_group(admin, "billing")

    assert "CLUSTER_ACTION on the cluster, or READ on that topic" in str(caught.value)


async def test_source_coordinator_reads_no_records(broker, admin):
    await a_group(broker, admin)
    forbid(broker, CLUSTER_ACTION)
    inspection = await inspect_group(admin, "billing", source=StateSource.COORDINATOR)

    (error,) = inspection.partitions.errors.values()
    assert isinstance(error, AuthorizationError)
