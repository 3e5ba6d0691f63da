"""Reading the dead letters of workers and of brokers (KIP-1191)."""

from collections.abc import AsyncIterator

import anyio
import pytest
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

from sharecons import ShareConsumer, ShareGroupAdmin
from sharecons.copies.dead_letter_headers import Origin, RedriveMark, redrive_headers
from sharecons.dead_letters import DeadLetterRecord, DeadLetters, SourceStatus
from sharecons.errors import ConfigurationError
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend, is_virtual
from tests.dead_letters.letters import DEAD, new_letter, produce_letters, records_of
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


on_real_clock = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
"""For tests in which another client, with a socket, deletes records."""

LETTERS = "dlq.orders"
NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
ENABLE = "errors.deadletterqueue.group.enable"
TRACE = (("trace", b"1"), ("empty", None))


@pytest.fixture
async def broker(anyio_backend: object) -> AsyncIterator[EmbeddedBroker]:
    listen = not is_virtual(anyio_backend)
    async with EmbeddedBroker(settings=SETTINGS, listen=listen) as broker:
        broker.create_topic("orders", partitions=1)
        broker.create_topic(LETTERS, partitions=1, config={ENABLE: "true"})
        broker.create_topic(DEAD, partitions=1)
        yield broker


async def reject_all(broker: EmbeddedBroker, count: int, *, copy: bool) -> None:
    """Reject the records of orders, so that the broker writes dead letters."""
    broker.set_group_config(
        "billing",
        {NAME: LETTERS, COPY: str(copy).lower(), "share.auto.offset.reset": "earliest"},
    )
    consumer: ShareConsumer[bytes, bytes] = ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        acknowledgement="explicit",
        network=broker.network,
    )
    with anyio.fail_after(20):
        async with consumer:
            for _ in range(count):
                record = await anext(aiter(consumer))
                record.reject()
            await consumer.commit()
    await until(lambda: len(broker.records(LETTERS)) == count)


def produce_orders(broker: EmbeddedBroker, count: int = 3) -> None:
    for number in range(count):
        value, key = b"v%d" % number, b"k%d" % number
        broker.produce("orders", [value], keys=[key], headers=TRACE)


async def letters_of(
    admin: ShareGroupAdmin, topic: str = LETTERS
) -> list[DeadLetterRecord]:
    return [each async for each in DeadLetters.from_admin(admin, topic).read()]


def delete_records(broker: EmbeddedBroker, before: int) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (done,) = client.delete_records([Position("orders", 0, before)]).values()
    done.result(10)


async def test_worker_letter_has_the_record_and_its_origin(
    broker: EmbeddedBroker, admin: ShareGroupAdmin
) -> None:
    produce_letters(broker, [new_letter(7, redrives=2)])

    (letter,) = await letters_of(admin, DEAD)

    assert (b"k7", b"v7", (("trace", b"1"),)) == (
        letter.key,
        letter.value,
        letter.headers,
    )
    assert (SourceStatus.COPIED, 2, f"{DEAD}-0@0") == (
        letter.status,
        letter.redrives,
        letter.position,
    )
    assert letter.origin is not None
    assert ("orders", 1, 7) == letter.origin[:3]


@pytest.mark.parametrize("copy", [False, True])
async def test_source_of_broker_letter_is_fetched(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, copy: bool
) -> None:
    produce_orders(broker)
    await reject_all(broker, 3, copy=copy)

    letters = await letters_of(admin)

    assert {SourceStatus.FETCHED} == {each.status for each in letters}
    assert [(b"k%d" % n, b"v%d" % n, TRACE) for n in range(3)] == [
        (each.key, each.value, each.headers) for each in letters
    ]
    assert [("billing", n) for n in range(3)] == [
        (each.origin.group, each.origin.offset) for each in letters if each.origin
    ]


@on_real_clock
@pytest.mark.parametrize(
    ("copy", "status"),
    [
        (False, SourceStatus.GONE),
        (True, SourceStatus.COPIED_WITHOUT_HEADERS),
    ],
)
async def test_source_removed_by_retention_is_gone(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, copy: bool, status: SourceStatus
) -> None:
    produce_orders(broker)
    await reject_all(broker, 3, copy=copy)
    await anyio.to_thread.run_sync(delete_records, broker, 2)

    letters = await letters_of(admin)

    assert [status, status, SourceStatus.FETCHED] == [each.status for each in letters]
    assert "retention has removed it: the log starts at 2" == letters[0].reason
    assert [b"v0" if copy else None, (), b"v2", TRACE] == [
        *(letters[0].value, letters[0].headers),
        *(letters[2].value, letters[2].headers),
    ]


@pytest.mark.parametrize("recreated", [False, True])
async def test_source_of_deleted_topic_is_gone(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, recreated: bool
) -> None:
    produce_orders(broker, 2)
    await reject_all(broker, 2, copy=False)
    broker.delete_topic("orders")
    if recreated:
        broker.create_topic("orders")

    with anyio.fail_after(10):
        letters = await letters_of(admin)

    assert [SourceStatus.GONE] * 2 == [each.status for each in letters]
    expected = "log ends before" if recreated else "topic or partition does not exist"
    assert expected in (letters[1].reason or "")


async def test_copy_of_another_record_is_not_mixed_with_its_headers(
    broker: EmbeddedBroker, admin: ShareGroupAdmin
) -> None:
    produce_orders(broker, 1)
    await reject_all(broker, 1, copy=True)
    broker.delete_topic("orders")
    broker.create_topic("orders")
    broker.produce("orders", [b"another"], headers=TRACE)

    (letter,) = await letters_of(admin)

    assert (b"v0", (), SourceStatus.COPIED_WITHOUT_HEADERS) == (
        letter.value,
        letter.headers,
        letter.status,
    )


async def test_sources_in_many_batches_are_found(
    broker: EmbeddedBroker, admin: ShareGroupAdmin
) -> None:
    values = [b"%d" % n * 1000 for n in range(300)]
    broker.produce("orders", values, batch=7)
    await reject_all(broker, 300, copy=False)

    letters = await letters_of(admin)

    assert values == [each.value for each in letters]


@on_real_clock
@pytest.mark.slow("waits in real time")
async def test_broker_letters_are_redriven_with_their_headers(
    broker: EmbeddedBroker, admin: ShareGroupAdmin
) -> None:
    produce_orders(broker)
    await reject_all(broker, 3, copy=False)
    await anyio.to_thread.run_sync(delete_records, broker, 1)

    summary = await DeadLetters.from_admin(admin, LETTERS).redrive()

    assert (2, {"its source is gone": 1}) == (summary.redriven, summary.skipped)
    redriven = (await records_of(admin, "orders"))[-2:]
    assert [(b"k1", b"v1"), (b"k2", b"v2")] == [(r.key, r.value) for r in redriven]
    mark = RedriveMark(LETTERS, LETTERS, 0, 1)
    (_, letter, _) = await letters_of(admin)
    assert letter.origin is not None
    own = redrive_headers(mark, 1, letter.origin, letter.timestamp)
    assert (*TRACE, *own) == redriven[0].headers


async def test_redrives_of_broker_letters_are_counted_in_the_source(
    broker: EmbeddedBroker, admin: ShareGroupAdmin
) -> None:
    first = Origin("orders", 0, 0, "billing", 1, "bad")
    headers = redrive_headers(RedriveMark("n", LETTERS, 0, 0), 3, first, 7)
    broker.produce("orders", [b"v"], headers=headers)
    await reject_all(broker, 1, copy=True)

    (letter,) = await letters_of(admin)
    summary = await DeadLetters.from_admin(admin, LETTERS).redrive()

    assert (3, ()) == (letter.redrives, letter.headers)
    assert letter.origin is not None
    assert ("orders:0:0", 7) == (letter.origin.first_origin, letter.origin.first_failed)
    assert {"it was redriven too often": 1} == summary.skipped


async def test_records_without_origin_are_read(
    broker: EmbeddedBroker, admin: ShareGroupAdmin
) -> None:
    broker.produce(DEAD, [b"v"], headers=TRACE)

    (letter,) = await letters_of(admin, DEAD)

    assert (None, SourceStatus.NO_ORIGIN, b"v", TRACE) == (
        letter.origin,
        letter.status,
        letter.value,
        letter.headers,
    )


async def test_get_returns_one_letter_or_none(
    broker: EmbeddedBroker, admin: ShareGroupAdmin
) -> None:
    produce_letters(broker, [new_letter(n) for n in range(5)])
    letters = DeadLetters.from_admin(admin, DEAD)

    found = await letters.get(0, 3)

    assert found is not None
    assert b"v3" == found.value
    assert await letters.get(0, 5) is None
    assert await letters.get(0, 99) is None
    with pytest.raises(ConfigurationError, match="has no partition 1: its partitions"):
        await letters.get(1, 0)
