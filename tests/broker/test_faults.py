"""Fault injection of the embedded broker."""

import threading
from datetime import timedelta

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.error_responses import error_code
from tests.broker.async_client import Client
from tests.broker.messages import METADATA, VERSIONS, encode_request, make_request

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True

DELETE = make_request("delete_topics", 5, topic_names=("orders",), timeout=timedelta(0))


@pytest.fixture
async def kafka():
    async with EmbeddedBroker(brokers=2, listen=False, topics={"orders": 1}) as broker:
        yield broker


async def send(kafka, request=METADATA, *, node=1, client_id="test"):
    return await Client(kafka.connect(node), client_id).request(request)


async def timed(kafka, request=METADATA):
    began = anyio.current_time()
    await send(kafka, request)
    return anyio.current_time() - began


def has_topic(kafka):
    return kafka.cluster.topics.by_name("orders") is not None


async def test_cut_closes_connection_once(kafka):
    fault = kafka.faults.on("Metadata").cut()
    client = Client(kafka.connect(1))
    await client.send(METADATA)

    assert await client.ended()
    assert (await send(kafka)).topics
    assert 1 == fault.hits


@pytest.mark.parametrize(("after", "remains"), [(False, True), (True, False)])
async def test_cut_acts_before_or_after_handling(kafka, after, remains):
    kafka.faults.on("DeleteTopics").cut(after=after)
    client = Client(kafka.connect(1))
    await client.send(DELETE)

    assert await client.ended()
    assert remains is has_topic(kafka)


async def test_requests_after_cut_are_not_handled(kafka):
    kafka.faults.on("Metadata").cut()
    client = Client(kafka.connect(1))
    await client.stream.send(encode_request(METADATA) + encode_request(DELETE))

    assert await client.ended()
    assert has_topic(kafka)
    assert ["Metadata"] == [request.api for request in kafka.requests]


async def test_lose_handles_request_without_response(kafka):
    kafka.faults.on("DeleteTopics").lose()
    with anyio.move_on_after(3600) as waited:
        await send(kafka, DELETE)

    assert waited.cancelled_caught
    assert not has_topic(kafka)


async def test_stall_handles_request_later(kafka):
    kafka.faults.on("DeleteTopics").stall(30)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send, kafka, DELETE)
        await anyio.sleep(29)
        assert has_topic(kafka)
        await anyio.sleep(2)
        assert not has_topic(kafka)


async def test_undo_ends_a_stall(kafka):
    fault = kafka.faults.on("Metadata", times=None).stall()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send, kafka)
        tasks.start_soon(send, kafka)
        await anyio.sleep(100)
        assert 2 == fault.hits
        fault.undo()
        began = anyio.current_time()

    assert anyio.current_time() == pytest.approx(began)


async def test_with_block_undoes_the_fault(kafka):
    with kafka.faults.on("Metadata", times=None).refuse("COORDINATOR_NOT_AVAILABLE"):
        assert [] == list((await send(kafka)).topics)

    assert (await send(kafka)).topics


async def test_delay_handles_immediately_and_responds_later(kafka):
    kafka.faults.on("Metadata").delay(60)
    responses = []
    async with anyio.create_task_group() as tasks:

        async def read_metadata():
            responses.append(await send(kafka))

        tasks.start_soon(read_metadata)
        await anyio.sleep(30)
        kafka.create_topic("later")
        assert [] == responses

    assert ["orders"] == [topic.name for topic in responses[0].topics]


async def test_disconnect_ends_a_stall(kafka):
    kafka.faults.on("Metadata").stall()
    client = Client(kafka.connect(1))
    await client.send(METADATA)
    await anyio.sleep(1)
    await client.stream.aclose()
    await anyio.sleep(1)

    assert 0 == pytest.approx(await timed(kafka))


async def test_throttle_responds_and_then_pauses(kafka):
    kafka.faults.on("Metadata").throttle(7)
    client = Client(kafka.connect(1))
    response = await client.request(METADATA)
    began = anyio.current_time()
    assert 7 == response.throttle_time.total_seconds()
    await client.request(METADATA)

    assert 7 == pytest.approx(anyio.current_time() - began)


async def test_duplicated_response_arrives_twice(kafka):
    kafka.faults.on("Metadata").respond_twice()
    client = Client(kafka.connect(1))
    await client.send(METADATA)

    assert await client.frame() == await client.frame()


async def test_respond_uses_returned_fields(kafka):
    seen = []

    def by(request, context):
        seen.append(context.header.client_id)
        return {"cluster_id": "mine"}

    kafka.faults.on("Metadata").respond(by)

    assert "mine" == (await send(kafka)).cluster_id
    assert ["test"] == seen


async def test_respond_accepts_coroutine_and_none(kafka):
    async def by(request, context):
        await anyio.sleep(10)

    kafka.faults.on("Metadata").respond(by)
    client = Client(kafka.connect(1))
    await client.send(METADATA)
    await client.send(VERSIONS)
    began = anyio.current_time()

    assert not (await client.receive(VERSIONS)).error_code
    assert 10 == pytest.approx(anyio.current_time() - began)


async def test_corrupt_keeps_length_and_correlation_id(kafka):
    kafka.faults.on("Metadata").corrupt()
    client = Client(kafka.connect(1))
    await client.send(METADATA)
    bad = await client.frame()
    await client.send(METADATA)
    good = await client.frame()

    assert len(good) == len(bad)
    assert b"\0\0\0\1" == bad[:4]
    assert all(
        one ^ other == 0xFF for one, other in zip(good[4:], bad[4:], strict=True)
    )


@pytest.mark.parametrize(
    ("choice", "hit"),
    [
        ({"node": 1}, [True, False, True]),
        ({"client_id": "b"}, [False, False, True]),
        ({"after": 1}, [False, True, True]),
        ({"times": 2}, [True, True, False]),
        (
            {"where": lambda request, context: context.node_id == 2},
            [False, True, False],
        ),
    ],
)
async def test_fault_takes_only_matching_requests(kafka, choice, hit):
    kafka.faults.on("Metadata", **{"times": None, **choice}).respond(
        lambda request, context: {"cluster_id": "hit"}
    )
    seen = [
        (await send(kafka, node=node, client_id=client_id)).cluster_id == "hit"
        for node, client_id in ((1, "a"), (2, "a"), (1, "b"))
    ]

    assert hit == seen
    assert not (await send(kafka, VERSIONS)).error_code


async def test_oldest_fault_takes_the_request(kafka):
    for name in ("first", "second"):
        kafka.faults.on("Metadata").respond(
            lambda request, context, name=name: {"cluster_id": name}
        )
    responses = [(await send(kafka)).cluster_id for _ in range(2)]

    assert ["first", "second"] == responses


async def test_clear_undoes_all_faults(kafka):
    for _ in range(3):
        kafka.faults.on("Metadata").lose()
    kafka.faults.clear()

    assert (await send(kafka)).topics


async def test_unknown_api_raises(kafka):
    with pytest.raises(ValueError, match="ShareFetch"):
        kafka.faults.on("SharedFetch")


def test_faults_can_be_set_from_other_threads():
    with EmbeddedBroker() as kafka:
        setting = threading.Thread(
            target=lambda: kafka.faults.on("Metadata").cut(), daemon=True
        )
        setting.start()
        setting.join(5)

        assert 1 == len(kafka.faults.active)


def test_errors_are_given_by_number_or_name():
    assert ErrorCode.not_coordinator is error_code("NOT_COORDINATOR")
    assert ErrorCode.not_coordinator is error_code(16)
    assert ErrorCode.not_coordinator is error_code(ErrorCode.not_coordinator)
    with pytest.raises(ValueError, match="NO_SUCH"):
        error_code("NO_SUCH")
