"""Dead letters of share groups (KIP-1191).

The expected values were measured on Kafka 4.4.0; the last test runs on it, if present.
"""

import gzip
from datetime import timedelta
from functools import partial

import anyio
import pytest
from kio.schema.errors import ErrorCode

from sharecons.protocol.codes import Code
from sharecons.testing.broker.settings.changes import Change
from sharecons.testing.broker.share.partitions import SharePartitionKey
from tests.broker.async_client import Client
from tests.broker.clients import Clients, new_name
from tests.broker.clients import read as consumed
from tests.broker.messages import make_request
from tests.broker.raw_batches import NOW, batch
from tests.broker.share_groups import ARCHIVED, ARCHIVING
from tests.broker.share_members import TOPIC, acquired, codes, group_of
from tests.kafka_plugin import VERSION
from tests.records.reading import decode_payload, record_fields
from tests.scenarios.raw import RawMember, acks, delivery_counts

LETTERS = "dlq.orders"
NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
ENABLE = "errors.deadletterqueue.group.enable"
CREATE = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
REJECTED = b"Offset rejected by client."
SPENT = b"Offset delivery count exceeded the threshold."

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True


def set_dead_letter_topic(group, name=LETTERS, partitions=1, enable="true", **config):
    """Set a dead letter topic for group g."""
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    group.kafka.create_topic(name, partitions, config={ENABLE: enable, **dotted})
    group.kafka.set_group_config("g", {NAME: name})


def letters(group, name=LETTERS):
    """Return the dead letters: partitions, keys, values, headers."""
    places = group.kafka.cluster.topics.by_name(name).partitions
    return [
        (place.index, key, value, dict(headers))
        for place in places
        for _, _, key, value, headers, _ in record_fields(written_to(place))
    ]


def written_to(place):
    batches = place.log.batches(0, place.log.end_offset, 1 << 30)
    return decode_payload(b"".join(each.data for each in batches)).records


def headers_of(offset, message=REJECTED, partition=0, count=1):
    """Return the headers in Kafka's order."""
    return {
        "__dlq.errors.topic": TOPIC.encode(),
        "__dlq.errors.partition": b"%d" % partition,
        "__dlq.errors.offset": b"%d" % offset,
        "__dlq.errors.group": b"g",
        "__dlq.errors.delivery.count": b"%d" % count,
        "__dlq.errors.message": message,
    }


def states(group, partition=0):
    """Return the coordinator's state of a share partition."""
    key = SharePartitionKey("g", group.topic_id, partition)
    return [tuple(each) for each in group.partitions.state(key).batches]


async def test_dead_letter_of_rejected_record_has_no_content():
    async with group_of(partitions=3) as group:
        set_dead_letter_topic(group, partitions=2)
        group.produce(3, partition=2, headers=[("h", b"1")], keys=["k"] * 3)
        ann = group.member("ann")
        await ann.fetch(2)
        await ann.acknowledge((0, 0, (1,)), (1, 2, (3,)), partition=2)

        found = letters(group)
        assert [
            (0, None, None, headers_of(offset, partition=2)) for offset in (1, 2)
        ] == found
        assert list(headers_of(1)) == list(found[0][3])
        assert [(1, 2, ARCHIVED, 1)] == states(group, 2)[-1:]


async def test_record_at_delivery_limit_is_written():
    async with group_of(delivery_count_limit=2) as group:
        set_dead_letter_topic(group)
        group.produce(2)
        ann = group.member("ann")
        await ann.fetch()
        await ann.acknowledge((0, 1, (2,)))
        await ann.fetch()
        await ann.acknowledge((0, 0, (2,)))
        await ann.close()

        assert [
            (0, None, None, headers_of(offset, SPENT, count=2)) for offset in (0, 1)
        ] == letters(group)


async def test_closed_connection_writes_dead_letters():
    async with group_of(delivery_count_limit=2) as group:
        set_dead_letter_topic(group)
        group.produce(1)
        for name in ("ann", "bob"):
            member = group.member(name)
            await member.fetch()
            await member.cut()

        assert [(0, None, None, headers_of(0, SPENT, count=2))] == letters(group)


async def test_fetch_with_reject_writes_dead_letters():
    async with group_of() as group:
        set_dead_letter_topic(group)
        group.produce(2)
        ann = group.member("ann")
        await ann.fetch()
        await ann.fetch(topics=ann.named((0, ((0, 1, (3,)),))))
        group.produce(1)

        assert 2 == len(letters(group))
        assert [(2, 2, 1)] == acquired(await ann.fetch())


async def test_copy_has_key_and_value_but_no_source_headers():
    async with group_of() as group:
        set_dead_letter_topic(group)
        group.kafka.set_group_config("g", {COPY: "true"})
        keys, values = [b"k", None, b""], [None, b"", b"c"]
        group.kafka.produce(TOPIC, values, keys=keys, headers=[("h", b"1")])
        ann = group.member("ann")
        await ann.fetch()
        await ann.acknowledge((0, 2, (3,)))

        assert [
            (0, key, value, headers_of(offset))
            for offset, (key, value) in enumerate(zip(keys, values, strict=True))
        ] == letters(group)


@pytest.mark.parametrize("is_compressed", [True, False])
async def test_too_large_records_are_not_copied(is_compressed):
    """A compressed batch is copied as a whole or not at all."""
    async with group_of() as group:
        set_dead_letter_topic(group, max_message_bytes="400")
        group.kafka.set_group_config("g", {COPY: "true"})
        how = {"compress": gzip.compress, "attributes": 1} if is_compressed else {}
        log = group.kafka.cluster.topics.by_name(TOPIC).partitions[0].log
        log.append(batch("x" * 1000, "small", **how), NOW)
        log.append(batch("fits", compress=gzip.compress, attributes=1), NOW)
        ann = group.member("ann")
        await ann.fetch()
        await ann.acknowledge((0, 2, (3,)))

        small = None if is_compressed else b"small"
        assert [None, small, b"fits"] == [value for _, _, value, _ in letters(group)]


async def test_deleted_records_are_written_without_content():
    async with group_of() as group:
        set_dead_letter_topic(group)
        group.kafka.set_group_config("g", {COPY: "true"})
        group.produce(4)
        ann = group.member("ann")
        await ann.fetch()
        group.kafka.cluster.topics.by_name(TOPIC).partitions[0].log.truncate_before(2)
        await ann.acknowledge((1, 1, (3,)), (3, 3, (3,)))

        assert [None, b"x"] == [value for _, _, value, _ in letters(group)]


async def test_many_dead_letters_fill_several_batches():
    async with group_of() as group:
        set_dead_letter_topic(group, max_message_bytes="1000")
        group.produce(100)
        ann = group.member("ann")
        await ann.fetch()
        await ann.acknowledge((0, 99, (3,)))

        place = group.kafka.cluster.topics.by_name(LETTERS).partitions[0]
        batches = place.log.batches(0, 100, 1 << 30)
        assert 100 == len(letters(group))
        assert all(800 < len(each.data) <= 1000 for each in batches[:-1])


@pytest.mark.parametrize(
    "config",
    [
        {"name": "orders.dlq"},
        {"enable": "false"},
        {"cleanup_policy": "compact"},
    ],
)
async def test_unwritable_dead_letters_are_archived(config):
    async with group_of() as group:
        set_dead_letter_topic(group, **config)
        group.produce(2)
        ann = group.member("ann")
        await ann.fetch()

        assert [ErrorCode.none] == codes(await ann.acknowledge((0, 0, (3,))))
        assert [] == letters(group, config.get("name", LETTERS))
        assert [(0, 0, ARCHIVED, 1)] == states(group)


async def test_missing_dead_letter_topic_is_created_if_allowed():
    async with group_of() as group:
        topics, configs = group.kafka.cluster.topics, group.kafka.cluster.configs
        group.kafka.set_group_config("g", {NAME: LETTERS})
        group.produce(3)
        ann = group.member("ann")
        await ann.fetch()
        await ann.acknowledge((0, 0, (3,)))
        assert topics.by_name(LETTERS) is None
        configs.alter_broker("", [Change(CREATE, 0, "true")])
        configs.alter_broker("", [Change(PREFIX, 0, "other.")])
        await ann.acknowledge((1, 1, (3,)))
        assert topics.by_name(LETTERS) is None
        configs.alter_broker("", [Change(PREFIX, 0, "")])
        await ann.acknowledge((2, 2, (3,)))

        assert [(0, None, None, headers_of(2))] == letters(group)
        config = topics.by_name(LETTERS).config
        assert {ENABLE: "true", "message.timestamp.type": "CreateTime"} == config


@pytest.mark.parametrize("name", ["no topic", ".", "dlq_orders"])
async def test_invalid_dead_letter_topic_is_not_created(name):
    async with group_of() as group:
        configs = group.kafka.cluster.configs
        configs.alter_broker("", [Change(CREATE, 0, "true")])
        configs.alter_broker("", [Change(PREFIX, 0, "")])
        group.kafka.create_topic(LETTERS)
        group.kafka.set_group_config("g", {NAME: name})
        group.produce(1)
        ann = group.member("ann")
        await ann.fetch()

        assert [ErrorCode.none] == codes(await ann.acknowledge((0, 0, (3,))))
        assert group.kafka.cluster.topics.by_name(name) is None


async def test_fetch_of_dead_letter_topic_advances_the_group():
    async with group_of(delivery_count_limit=2) as group:
        set_dead_letter_topic(group)
        group.produce(1)
        ann = group.member("ann")
        await ann.fetch()
        await ann.acknowledge((0, 0, (2,)))
        await ann.fetch()
        client = Client(group.kafka.connect(1))
        began = anyio.current_time()
        response = await client.request(plain_fetch(LETTERS, seconds=60))
        await client.stream.aclose()

        assert 30.0 == pytest.approx(anyio.current_time() - began, abs=0.1)
        assert 1 == response.responses[0].partitions[0].high_watermark


def plain_fetch(topic, seconds):
    partition = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
    }
    values = {
        "replica_id": -1,
        "max_wait": timedelta(seconds=seconds),
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "topics": ({"topic": topic, "partitions": (partition,)},),
    }
    return make_request("fetch", 11, **values)


async def test_without_leader_records_stay_archiving():
    async with group_of() as group:
        set_dead_letter_topic(group)
        group.produce(3)
        ann = group.member("ann")
        await ann.fetch()
        group.kafka.cluster.move_leader(LETTERS, 0, -1)
        await ann.acknowledge((0, 0, (3,)))
        assert [(0, 0, ARCHIVING, 1)] == states(group)
        assert [ErrorCode.invalid_record_state] == codes(
            await ann.acknowledge((0, 0, (1,)))
        )

        group.kafka.cluster.move_leader(LETTERS, 0, 1)
        await anyio.sleep(1.9)
        assert [(0, 0, ARCHIVING, 1)] == states(group)
        await anyio.sleep(0.2)
        assert [(0, 0, ARCHIVED, 1)] == states(group)
        assert [(0, None, None, headers_of(0))] == letters(group)


async def test_without_leader_for_long_records_are_archived():
    async with group_of(record_lock_duration_ms=60000) as group:
        set_dead_letter_topic(group)
        group.produce(2)
        ann = group.member("ann")
        await ann.fetch()
        group.kafka.cluster.move_leader(LETTERS, 0, -1)
        await ann.acknowledge((0, 0, (3,)))
        await anyio.sleep(29.0)
        assert [(0, 0, ARCHIVING, 1)] == states(group)
        await anyio.sleep(1.5)
        assert [(0, 0, ARCHIVED, 1)] == states(group)

        group.kafka.cluster.move_leader(LETTERS, 0, 1)
        await anyio.sleep(20.0)
        states(group)
        assert [] == letters(group)


async def test_moved_leader_hands_over_archiving_records():
    async with group_of(brokers=2) as group:
        set_dead_letter_topic(group)
        group.produce(2)
        ann, bob = group.member("ann"), group.member("bob", node=2)
        await ann.fetch()
        group.kafka.cluster.move_leader(LETTERS, 0, -1)
        await ann.acknowledge((0, 0, (3,)))
        group.kafka.move_leader(TOPIC, 0, to=2)
        group.kafka.cluster.move_leader(LETTERS, 0, 1)

        assert [(1, 1, 1)] == acquired(await bob.fetch())
        assert [(0, None, None, headers_of(0))] == letters(group)


# Kafka 4.4.


@pytest.mark.slow("a real Kafka writes dead letters")
@pytest.mark.parametrize(
    "which",
    [
        "embedded_kafka",
        pytest.param(
            "real_kafka",
            marks=[
                pytest.mark.kafka,
                pytest.mark.newer_kafka,
                pytest.mark.skipif(VERSION != "4.4.0", reason="Kafka 4.4 brought it"),
            ],
        ),
    ],
)
def test_kafka_writes_equal_dead_letters(which, request):
    kafka = request.getfixturevalue(which)
    topic, letters, group = (
        new_name(f"{kind}topic") for kind in ("", "dlq.", "group-of-")
    )
    admin = kafka.admin
    admin.create_topic(3, topic)
    admin.create_topic(2, letters, config={ENABLE: "true"})
    admin.set_group_config(
        group,
        {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": 2,
            NAME: letters,
        },
    )
    keys = [b"k%d" % number for number in range(5)]
    admin.produce(topic, [b"v"] * 5, 2, keys, [("h", b"1")], compression="gzip")
    with Clients(kafka) as clients:
        anyio.run(partial(reject_and_release, kafka, topic, group), backend="asyncio")
        consumer = clients.consumer()
        consumer.subscribe([letters])
        found = consumed(consumer, 4)

    assert {0} == {message.partition() for message in found}
    assert [
        (b"0", b"1", REJECTED, None, None),
        (b"1", b"1", REJECTED, b"k1", b"v"),
        (b"2", b"2", SPENT, b"k2", b"v"),
        (b"3", b"2", SPENT, b"k3", b"v"),
    ] == sorted(
        (
            dict(message.headers())["__dlq.errors.offset"],
            dict(message.headers())["__dlq.errors.delivery.count"],
            dict(message.headers())["__dlq.errors.message"],
            message.key(),
            message.value(),
        )
        for message in found
    )
    assert all(
        [
            ("__dlq.errors.topic", topic.encode()),
            ("__dlq.errors.partition", b"2"),
            ("__dlq.errors.group", group.encode()),
        ]
        == [message.headers()[at] for at in (0, 1, 3)]
        for message in found
    )


async def reject_and_release(kafka, topic, group):
    """Reject two records, one of them without a copy, and release two too often."""
    async with RawMember(kafka.bootstrap_servers, group) as member:
        partition = (await member.join(topic))[2]
        held = {}
        while len(held) < 5:
            held |= delivery_counts(await member.fetch_one(partition))
        await acknowledge(member, acks(partition, (0, 0, b"\3")))
        await anyio.sleep(1.0)
        kafka.admin.set_group_config(group, {COPY: "true"})
        acknowledgements = acks(partition, (1, 1, b"\3"), (2, 3, b"\2"), (4, 4, b"\1"))
        await acknowledge(member, acknowledgements)
        again = {}
        while len(again) < 2:
            again |= delivery_counts(await member.fetch_one(partition))
        assert {2: 2, 3: 2} == again
        await acknowledge(member, acks(partition, (2, 3, b"\2")))


async def acknowledge(member, what):
    response = await member.acknowledge(what)
    assert [Code.NONE] == [part.acknowledge_error for part in response.partitions]
