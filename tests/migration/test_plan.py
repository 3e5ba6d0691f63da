"""Plans and their execution, on both Kafkas."""

import uuid
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread as to_thread
import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient

from sharecons import ShareConsumer, ShareGroupAdmin
from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    OutdatedPlanError,
)
from sharecons.migration import Direction, MissingPolicy, execute, plan
from tests.kafka_plugin import BROKERS, EmbeddedCluster

pytestmark = pytest.mark.anyio

TIMEOUT = 30.0


@pytest.fixture
async def admin(kafka):
    async with ShareGroupAdmin(
        bootstrap_servers=kafka.bootstrap_servers, timeout=20
    ) as admin:
        yield admin


@pytest.fixture
def topic(kafka):
    name = kafka.admin.create_topic(3)
    for partition in (0, 1):
        kafka.admin.produce(name, [b"%d" % n for n in range(100)], partition=partition)
    return name


@pytest.fixture
def old():
    return f"old-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def new(old):
    return old.replace("old", "new")


def offsets_of(topic, *offsets):
    return {TopicPartition(topic, n): offset for n, offset in enumerate(offsets)}


async def commit(admin, group, offsets):
    (await admin.alter_consumer_group_offsets(group, offsets)).check()


async def start(admin, group, offsets):
    (await admin.alter_share_group_offsets(group, offsets)).check()


async def started(admin, group):
    listed = await admin.list_share_group_offsets(group)
    return {
        key: one.start_offset
        for key, one in listed[group].value.found.items()
        if one.start_offset is not None
    }


async def committed(admin, group):
    fetched = await admin.list_consumer_group_offsets(group)
    return {key: one.offset for key, one in fetched[group].value.found.items() if one}


def read_as_new_consumer(kafka, topic, group, count):
    """Read with the protocol of KIP-848, and commit."""
    reader = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    reader.subscribe([topic])
    read = 0
    while read < count:
        read += len(reader.consume(count - read, TIMEOUT))
    reader.commit(asynchronous=False)
    reader.close()


def delete_records(kafka, topic, before):
    """Delete the records of partition 0 below an offset."""
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    (deleted,) = client.delete_records([ConfluentPartition(topic, 0, before)]).values()
    deleted.result(TIMEOUT)


class TestThereAndBack:
    async def test_committed_offsets_become_start_offsets(self, admin, topic, old, new):
        await commit(admin, old, offsets_of(topic, 40, 100))
        planned = await plan(admin, old, new)
        nothing_yet = await admin.list_groups()
        results = await execute(admin, planned)

        assert Direction.TO_SHARE_GROUP is planned.direction
        assert offsets_of(topic, 40, 100) == planned.offsets == results.found
        assert new not in nothing_yet.groups
        assert offsets_of(topic, 40, 100) == await started(admin, new)
        assert offsets_of(topic, 40, 100) == await committed(admin, old)

    async def test_start_offsets_become_committed_offsets(self, admin, topic, old, new):
        await start(admin, new, offsets_of(topic, 40, 100))
        planned = await plan(admin, new, old)
        (await execute(admin, planned)).check()

        assert Direction.TO_CONSUMER_GROUP is planned.direction
        assert (0, None) == (planned.twice, planned.moves[topic, 2].offset)
        assert offsets_of(topic, 40, 100) == await committed(admin, old)

    async def test_second_migration_has_nothing_to_move(self, admin, topic, old, new):
        await commit(admin, old, offsets_of(topic, 40, 100))
        first = await plan(admin, old, new)
        (await execute(admin, first)).check()

        assert {} == (await plan(admin, old, new)).offsets
        # Carrying out the same plan again changes nothing.
        assert offsets_of(topic, 40, 100) == (await execute(admin, first)).found

    async def test_only_named_partitions_are_moved(self, admin, topic, old, new):
        await commit(admin, old, offsets_of(topic, 40, 100))
        one = TopicPartition(topic, 1)
        planned = await plan(admin, old, new, topics=[one])
        (await execute(admin, planned)).check()

        assert {one: 100} == await started(admin, new)

    async def test_partitions_without_a_commit_are_noted_and_can_be_set(
        self, admin, topic, old, new
    ):
        await commit(admin, old, offsets_of(topic, 40))
        left = await plan(admin, old, new)
        placed = await plan(admin, old, new, missing=MissingPolicy.EARLIEST)

        assert "share.auto.offset.reset=latest" in left.moves[topic, 1].notes[0]
        assert (100, offsets_of(topic, 40)) == (left.missed, left.offsets)
        assert (0, offsets_of(topic, 40, 0, 0)) == (placed.missed, placed.offsets)

    async def test_removed_records_are_counted(self, admin, kafka, topic, old, new):
        await commit(admin, old, offsets_of(topic, 10, 100))
        await to_thread.run_sync(delete_records, kafka, topic, 25)
        planned = await plan(admin, old, new)

        assert (25, 15) == (planned.moves[topic, 0].offset, planned.missed)

    async def test_group_of_the_consumer_protocol_moves_there_and_back(
        self, admin, kafka, topic, old, new
    ):
        if isinstance(kafka.started, EmbeddedCluster):
            pytest.skip("the embedded broker has no groups of KIP-848")
        await to_thread.run_sync(read_as_new_consumer, kafka, topic, old, 150)
        there = await plan(admin, old, new)
        (await execute(admin, there)).check()
        one = TopicPartition(topic, 0)
        await start(admin, new, {one: 77})
        (await execute(admin, await plan(admin, new, old))).check()

        described = (await admin.describe_consumer_groups(old))[old].value
        assert "consumer" == described.group_type
        assert 150 == sum(there.offsets.values())
        assert 77 == (await committed(admin, old))[one]


class TestRejected:
    async def test_move_of_a_group_to_itself_is_rejected(self, admin, old):
        with pytest.raises(ConfigurationError, match="to itself"):
            await plan(admin, old, old)

    async def test_unknown_group_is_an_error(self, admin, old, new):
        with pytest.raises(BrokerError, match="there is no such group"):
            await plan(admin, old, new)

    @pytest.mark.parametrize(
        ("direction", "words"),
        [
            (Direction.TO_SHARE_GROUP, "to share group '.*': it is a consumer group"),
            (Direction.TO_CONSUMER_GROUP, "from share group '.*': it is a consumer"),
        ],
    )
    async def test_group_of_the_wrong_type_is_an_error(
        self, admin, topic, old, new, direction, words
    ):
        await commit(admin, old, offsets_of(topic, 40))
        await commit(admin, new, offsets_of(topic, 40))
        with pytest.raises(BrokerError, match=words):
            await plan(admin, old, new, direction=direction)

    async def test_unknown_topic_is_an_error(self, admin, topic, old, new):
        await commit(admin, old, offsets_of(topic, 40))
        with pytest.raises(BrokerError, match="'no-such-topic'"):
            await plan(admin, old, new, topics=["no-such-topic"])

    async def test_unknown_partition_does_not_affect_others(
        self, admin, topic, old, new
    ):
        await commit(admin, old, offsets_of(topic, 40))
        here, nowhere = TopicPartition(topic, 0), TopicPartition(topic, 9)
        planned = await plan(admin, old, new, topics=[nowhere, here])
        (await execute(admin, planned)).check()

        assert [nowhere] == list(planned.errors)
        assert {here: 40} == await started(admin, new)

    async def test_partition_that_changed_since_the_plan_is_not_moved(
        self, admin, topic, old, new
    ):
        await commit(admin, old, offsets_of(topic, 40, 100))
        planned = await plan(admin, old, new)
        await commit(admin, old, offsets_of(topic, 50))
        results = await execute(admin, planned)
        here, there = offsets_of(topic, 40, 100)

        assert isinstance(results[here].error, OutdatedPlanError)
        assert {there: 100} == results.found == await started(admin, new)


class TestGroupsWithMembers:
    @asynccontextmanager
    async def share_member(self, kafka, topic, group):
        consumer = ShareConsumer(
            topic, group_id=group, bootstrap_servers=kafka.bootstrap_servers
        )
        async with consumer:
            with anyio.move_on_after(0.3):
                await consumer.poll(timeout=0.3)
            yield

    async def test_share_group_with_members_is_rejected_as_source(
        self, admin, kafka, topic, old, new
    ):
        await start(admin, new, offsets_of(topic, 40, 100))
        async with self.share_member(kafka, topic, new):
            planned = await plan(admin, new, old)
            with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
                await execute(admin, planned)

        (obstacle,) = planned.obstacles
        assert f"cannot move from group '{new}': NON_EMPTY_GROUP" in str(obstacle)
        assert "stop its consumers first" in str(obstacle)

    @pytest.mark.slow("a coordinator works in real time")
    async def test_share_group_with_members_is_rejected_as_target(
        self, admin, kafka, topic, old, new
    ):
        await commit(admin, old, offsets_of(topic, 40, 100))
        planned = await plan(admin, old, new)
        async with self.share_member(kafka, topic, new):
            with pytest.raises(BrokerError, match="cannot move to group"):
                await execute(admin, planned)

    async def test_classic_group_with_members_is_rejected_as_source_and_target(
        self, admin, kafka, topic, old, new, anyio_backend_name
    ):
        if anyio_backend_name != "asyncio":
            pytest.skip("aiokafka needs asyncio")
        await start(admin, new, offsets_of(topic, 40, 100))
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=kafka.bootstrap_servers, group_id=old
        ) as consumer:
            await consumer.getmany(timeout_ms=100)
            back = await plan(admin, new, old)
            there = await plan(admin, old, f"{new}-2")

        for planned in (back, there):
            (obstacle,) = planned.obstacles
            assert f"group '{old}': NON_EMPTY_GROUP (1 members, Stable)" in str(
                obstacle
            )


@pytest.mark.slow("a coordinator works in real time")
async def test_offsets_in_open_transactions_are_awaited(kafka, topic, old, new):
    reader = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": old})
    producer = kafka.admin.producer(transactional_id=f"t-{old}")
    producer.init_transactions(TIMEOUT)
    producer.begin_transaction()
    metadata = reader.consumer_group_metadata()
    producer.send_offsets_to_transaction(
        [ConfluentPartition(topic, 0, 40)], metadata, TIMEOUT
    )
    async with ShareGroupAdmin(
        bootstrap_servers=kafka.bootstrap_servers, timeout=1.0
    ) as hasty:
        early = await plan(hasty, old, new, topics=[TopicPartition(topic, 0)])
    producer.commit_transaction(TIMEOUT)
    reader.close()
    async with ShareGroupAdmin(
        bootstrap_servers=kafka.bootstrap_servers, timeout=20
    ) as patient:
        planned = await plan(patient, old, new, topics=[TopicPartition(topic, 0)])

    (error,) = early.errors.values()
    assert "UNSTABLE_OFFSET_COMMIT: a transaction is in progress" in str(error)
    assert offsets_of(topic, 40) == planned.offsets


@pytest.mark.skipif(BROKERS == "kafka", reason="faults are the embedded broker's")
class TestErrors:
    @pytest.fixture
    def kafka(self, embedded_kafka):
        yield embedded_kafka
        embedded_kafka.cluster.broker.faults.clear()

    @pytest.fixture
    def faults(self, kafka):
        return kafka.cluster.broker.faults

    async def accept_after_five(self, kafka, topic, group):
        async with ShareConsumer(
            topic,
            group_id=group,
            bootstrap_servers=kafka.bootstrap_servers,
            acknowledgement="explicit",
        ) as consumer:
            records = []
            while len(records) < 20:
                records += await consumer.poll(timeout=20, max_records=20)
            for record in records[5:]:
                record.accept()
            await consumer.commit()
        return len(records[5:])

    async def test_without_permission_for_states_twice_comes_from_the_lag(
        self, admin, kafka, faults, topic, old, new
    ):
        await start(admin, new, offsets_of(topic, 0))
        above = await self.accept_after_five(kafka, topic, new)
        fault = faults.on("ReadShareGroupStateSummary", times=None)
        with fault.refuse("CLUSTER_AUTHORIZATION_FAILED"):
            planned = await plan(admin, new, old, topics=[TopicPartition(topic, 0)])

        (move,) = planned.moves.values()
        assert (above, None, None) == (move.twice, move.acknowledged, move.archived)

    async def test_lost_response_is_not_a_failure(self, admin, faults, topic, old, new):
        await commit(admin, old, offsets_of(topic, 40, 100))
        planned = await plan(admin, old, new)
        with faults.on("AlterShareGroupOffsets").cut(after=True):
            results = await execute(admin, planned)

        assert offsets_of(topic, 40, 100) == results.found

    async def test_partial_failure_can_be_completed_later(
        self, admin, faults, topic, old, new
    ):
        await start(admin, new, offsets_of(topic, 40, 100))
        planned = await plan(admin, new, old)

        def refuse_one(request, context):
            return {
                "topics": [
                    {
                        "name": topic,
                        "partitions": [
                            {"partition_index": 0, "error_code": 0},
                            {"partition_index": 1, "error_code": 28},
                        ],
                    }
                ]
            }

        with faults.on("OffsetCommit").respond(refuse_one):
            results = await execute(admin, planned)
        again = await execute(admin, await plan(admin, new, old))

        here, there = offsets_of(topic, 40, 100)
        assert [here] == list(results.found)
        assert "INVALID_COMMIT_OFFSET_SIZE" in str(results[there].error)
        assert offsets_of(topic, 40, 100) == again.found == await committed(admin, old)

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            ("GROUP_AUTHORIZATION_FAILED", "no right to the group"),
            ("TOPIC_AUTHORIZATION_FAILED", "no right to the topic"),
            ("OFFSET_METADATA_TOO_LARGE", "metadata"),
            ("INVALID_GROUP_ID", "not valid for a group"),
            ("ILLEGAL_GENERATION", "stop its consumers first"),
            ("UNKNOWN_MEMBER_ID", "stop its consumers first"),
            ("STALE_MEMBER_EPOCH", "stop its consumers first"),
            ("REBALANCE_IN_PROGRESS", "stop its consumers first"),
            ("INVALID_COMMIT_OFFSET_SIZE", "commit fewer partitions"),
        ],
    )
    async def test_each_code_of_a_commit_is_one_clear_line(
        self, admin, faults, topic, old, new, code, words
    ):
        await start(admin, new, offsets_of(topic, 40))
        planned = await plan(admin, new, old)
        with faults.on("OffsetCommit", times=None).refuse(code):
            results = await execute(admin, planned)

        (error,) = results.errors.values()
        assert f"{topic}-0 in group '{old}'" in str(error)
        assert code in str(error)
        assert words in str(error)
        assert "\n" not in str(error)

    @pytest.mark.slow("a coordinator works in real time")
    async def test_topic_deleted_meanwhile_is_reported_at_the_timeout(
        self, admin, kafka, faults, topic, old, new
    ):
        await start(admin, new, offsets_of(topic, 40))
        fault = faults.on("OffsetCommit", times=None)
        async with ShareGroupAdmin(
            bootstrap_servers=kafka.bootstrap_servers, timeout=1.0
        ) as hasty:
            planned = await plan(hasty, new, old)
            with fault.refuse("UNKNOWN_TOPIC_OR_PARTITION"):
                results = await execute(hasty, planned)

        (error,) = results.errors.values()
        assert "UNKNOWN_TOPIC_OR_PARTITION" in str(error)

    @pytest.mark.parametrize(
        "code",
        [
            "COORDINATOR_NOT_AVAILABLE",
            "COORDINATOR_LOAD_IN_PROGRESS",
            "NOT_COORDINATOR",
        ],
    )
    @pytest.mark.parametrize("api", ["OffsetFetch", "OffsetCommit"])
    async def test_retriable_errors_are_retried(
        self, admin, faults, topic, old, new, code, api
    ):
        await start(admin, new, offsets_of(topic, 40))
        with faults.on(api).refuse(code, each=True) as fault:
            (await execute(admin, await plan(admin, new, old))).check()
            await committed(admin, old)

        assert 1 == fault.hits
        assert offsets_of(topic, 40) == await committed(admin, old)

    async def test_unreadable_group_raises_authorization_error(
        self, admin, faults, topic, old, new
    ):
        await commit(admin, old, offsets_of(topic, 40))
        with faults.on("OffsetFetch", times=None).refuse(
            "GROUP_AUTHORIZATION_FAILED", each=True
        ):
            with pytest.raises(AuthorizationError, match="no right to the group"):
                await plan(admin, old, new)
