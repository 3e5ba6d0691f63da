"""Faults that change the responses of the embedded broker."""

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.admin import ShareGroupAdmin
from sharecons.errors import AuthorizationError
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock


@pytest.fixture
async def broker():
    topics = {"orders": 2, "refunds": 1}
    async with EmbeddedBroker(
        brokers=2, settings=SETTINGS, listen=False, topics=topics
    ) as broker:
        yield broker


def consuming(broker, *topics, **options):
    return ShareConsumer(
        *(topics or ("orders",)),
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        network=broker.network,
        **options,
    )


async def read(consumer, count):
    """Return the values of the next records."""
    with anyio.fail_after(100):
        records = aiter(consumer)
        return [(await anext(records)).value for _ in range(count)]


async def test_change_replaces_fields_of_the_response(broker):
    def without_orders(response, context):
        topics = [each for each in response["topics"] if each["name"] != "orders"]
        return {**response, "topics": topics}

    fault = broker.faults.on("Metadata", times=None).change(without_orders)
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=broker.network
    ) as admin:
        assert {"refunds"} == set(await admin.describe_topics())
        fault.undo()
        assert {"orders", "refunds"} == set(await admin.describe_topics())


async def test_change_handles_the_request_first(broker):
    broker.produce("orders", [b"0"], partition=0)
    contexts = []

    def same(response, context):
        contexts.append(context.node_id)
        return response

    broker.faults.on("ShareFetch", times=None).change(same)
    async with consuming(broker) as consumer:
        assert [b"0"] == await read(consumer, 1)

    assert {1, 2} >= set(contexts)
    assert contexts


async def test_hang_up_sends_the_response_and_closes_the_connection(broker):
    broker.produce("orders", [b"0", b"1", b"2"], partition=0)
    fault = broker.faults.on("ShareGroupHeartbeat", times=2).hang_up()
    async with consuming(broker) as consumer:
        assert [b"0", b"1", b"2"] == await read(consumer, 3)

    versions = [each for each in broker.requests if each.api == "ApiVersions"]
    assert 2 == fault.hits
    assert len(versions) >= 3, "the consumer connects again"


async def test_refused_partition_has_an_error_and_the_others_have_records(broker):
    for partition in range(2):
        broker.produce("orders", [b"%d" % partition], partition=partition)
    broker.produce("refunds", [b"refund"])
    fault = broker.faults.on("ShareFetch", times=None).refuse_partitions(
        "TOPIC_AUTHORIZATION_FAILED", topic="orders", partition=1
    )
    values, errors = [], []

    async def read_all(consumer):
        while True:
            try:
                while True:
                    values.extend(await read(consumer, 1))
            except AuthorizationError as error:
                errors.append(error)

    async with consuming(broker, "orders", "refunds") as consumer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_all, consumer)
            await anyio.sleep(10)
            assert {b"0", b"refund"} == set(values)
            fault.undo()
            await until(lambda: b"1" in values)
            tasks.cancel_scope.cancel()

    assert 1 == len(errors)


async def test_refused_partitions_keep_the_share_session(broker):
    epochs = []

    def has_partitions(request, context):
        epochs.append((context.node_id, request.share_session_epoch))
        return True

    broker.faults.on("ShareFetch", times=None, where=has_partitions).refuse_partitions(
        "LEADER_NOT_AVAILABLE"
    )
    async with consuming(broker) as consumer:
        with anyio.move_on_after(5):
            await read(consumer, 1)
        sent = {node: [e for n, e in epochs if n == node] for node in (1, 2)}

    assert all(each == list(range(len(each))) for each in sent.values())


async def test_refused_partitions_have_the_leader_of_the_test(broker):
    broker.produce("orders", [b"0"], partition=0)
    broker.move_leader("orders", 0, to=1)
    broker.move_leader("orders", 1, to=1)
    fault = broker.faults.on("ShareFetch", times=None, node=1).refuse_partitions(
        "NOT_LEADER_OR_FOLLOWER", leader=lambda: (2, 1000)
    )
    async with consuming(broker) as consumer:
        with anyio.move_on_after(2):
            await read(consumer, 1)

    assert fault.hits
    assert 2 in {each.node_id for each in broker.requests if each.api == "ShareFetch"}


async def test_refused_acknowledgement_is_not_applied(broker):
    broker.produce("orders", [b"0"], partition=0)
    async with consuming(broker, acknowledgement="explicit") as consumer:
        (record,) = await consumer.poll(timeout=10)
        for api in ("ShareAcknowledge", "ShareFetch"):  # either has acknowledgements
            fault = broker.faults.on(api, times=None)
            fault.refuse_partitions("INVALID_RECORD_STATE")
        record.accept()
        (result,) = await consumer.commit()

    assert "INVALID_RECORD_STATE" == result.error.name
    assert b"0" == record.value
    assert 0 == broker.group("billing").partition("orders", 0).start_offset


async def test_refuse_partitions_of_an_api_without_share_session_raises(broker):
    with pytest.raises(ValueError, match="Metadata has no share session"):
        broker.faults.on("Metadata").refuse_partitions("CORRUPT_MESSAGE")
