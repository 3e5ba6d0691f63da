"""The programs of docs/producer.md, as they stand there."""

import inspect

import anyio
import pytest

from sharecons import Producer, errors
from tests.guides import Guide

GUIDE = Guide("producer.md")

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def broker(share_broker):
    for topic in ("orders", "orders.enriched"):
        share_broker.create_topic(topic)
    share_broker.set_group_config("enrich", {"share.auto.offset.reset": "earliest"})
    return share_broker


def values(broker, topic="orders") -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


async def test_order_is_taken(broker, capsys) -> None:
    await GUIDE.program("take_order")(broker.bootstrap_servers, b"tea")

    assert [b"tea"] == values(broker)
    assert "orders 0 0\n" == capsys.readouterr().out


async def test_orders_are_imported(broker, capsys) -> None:
    broker.faults.on("Produce").refuse("INVALID_RECORD")
    async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        await GUIDE.program("import_orders")(producer, [(b"k", b"a"), (b"l", b"b")])

    printed = capsys.readouterr().out
    assert 2 == printed.count("not written:")
    assert "INVALID_RECORD" in printed


@pytest.mark.slow("a consumer joins a group")
async def test_records_are_enriched(broker) -> None:
    broker.produce("orders", [b"tea"])

    async def transform(value: bytes) -> bytes:
        return value.upper()

    async with anyio.create_task_group() as tasks:
        enrich = GUIDE.program("enrich")
        tasks.start_soon(enrich, broker.bootstrap_servers, transform)
        await broker.wait_until_settled("enrich")
        tasks.cancel_scope.cancel()

    assert [b"TEA"] == values(broker, "orders.enriched")


async def test_example_of_a_test_passes(share_broker) -> None:
    await GUIDE.program("test_order_is_taken")(share_broker)


async def test_every_argument_is_in_the_guide() -> None:
    _, *of_send = inspect.signature(Producer.send).parameters
    for name in (*inspect.signature(Producer).parameters, *of_send):
        assert f"`{name}`" in GUIDE.text


async def test_every_error_of_the_guide_exists() -> None:
    table = GUIDE.text.partition("## Errors")[2].partition("## In tests")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    names = {word.strip("`,") for row in rows for word in row.split("|")[1].split()}
    found = {name for name in names if name.endswith("Error")}

    assert 11 == len(found)
    assert set() == found - set(errors.__all__) - {"TimeoutError"}
    assert 4 == GUIDE.compile()
