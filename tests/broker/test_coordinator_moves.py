"""The coordinator of a group moves, which takes time, or cannot write.

COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS as Kafka
returns them, without an injected fault.
"""

from datetime import timedelta

import anyio
import pytest
from kio.schema.errors import ErrorCode

from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.broker.coordinators import GROUP, SHARE, TRANSACTION
from sharecons.testing.kafka import KafkaCluster
from tests.broker.blocking_client import BlockingClient
from tests.broker.either import BOTH, Embedded
from tests.broker.group_requests import (
    REQUESTS,
    beat,
    commit,
    delete,
    join,
    own_error,
    partition,
    reset,
)
from tests.broker.messages import base64_id
from tests.kafka_plugin import VERSION
from tests.waiting import until_true

HERE, ELSEWHERE = 1, 2
MOVE = 2.0


LISTING = ("list_groups", 5, lambda group: {}, own_error)
EACH = pytest.mark.parametrize(
    ("api", "version", "fields", "error"),
    [*REQUESTS, LISTING],
    ids=[f"{api}-{version}" for api, version, *_ in [*REQUESTS, LISTING]],
)


@pytest.fixture
def embedded():
    """Two brokers; the first one coordinates the group."""
    embedded = Embedded(brokers=2)
    embedded.cluster.add_topic("t", [[1, 2]])
    embedded.cluster.coordinators.move(GROUP, "g", HERE)
    embedded.request("offset_commit", 9, HERE, **commit("g"))
    embedded.cluster.coordinators.move_time = MOVE
    embedded.cluster.coordinators.clock = lambda: embedded.now
    return embedded


def coordinator(embedded, key="g", key_type=GROUP):
    """Return the error and the node id of FindCoordinator."""
    (found,) = embedded.request(
        "find_coordinator", 6, ELSEWHERE, key_type=key_type, coordinator_keys=[key]
    ).coordinators
    return found.error_code, found.node_id


@EACH
def test_group_of_a_stopped_coordinator_is_elected_and_loaded(
    embedded, api, version, fields, error
):
    def rejection():
        return error(embedded.request(api, version, ELSEWHERE, **fields("g")))

    embedded.cluster.broker_stopped(HERE)

    assert (ErrorCode.coordinator_not_available, -1) == coordinator(embedded)
    assert rejection() in (ErrorCode.not_coordinator, ErrorCode.none)
    embedded.sleep(MOVE)
    assert (ErrorCode.none, ELSEWHERE) == coordinator(embedded)
    assert ErrorCode.coordinator_load_in_progress is rejection()
    embedded.sleep(MOVE)
    assert rejection() not in (
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_load_in_progress,
    )


def test_coordinator_moved_by_an_operator_loads_without_an_election(embedded):
    embedded.cluster.coordinators.move(GROUP, "g", ELSEWHERE)

    def rejection():
        return partition(embedded.request("offset_commit", 9, ELSEWHERE, **commit("g")))

    assert (ErrorCode.none, ELSEWHERE) == coordinator(embedded)
    assert ErrorCode.coordinator_load_in_progress is rejection()
    embedded.sleep(MOVE)
    assert ErrorCode.none is rejection()


def test_moved_transaction_coordinator_loads(embedded):
    embedded.cluster.coordinators.move(TRANSACTION, "x", ELSEWHERE)

    def rejection():
        return embedded.request(
            "init_producer_id",
            4,
            ELSEWHERE,
            transactional_id="x",
            transaction_timeout=timedelta(seconds=5),
            producer_id=-1,
            producer_epoch=-1,
        ).error_code

    assert ErrorCode.coordinator_load_in_progress is rejection()
    embedded.sleep(MOVE)
    assert ErrorCode.none is rejection()


def test_moved_share_coordinator_loads(embedded):
    topic_id = embedded.cluster.topics.by_name("t").topic_id
    key = f"g:{base64_id(topic_id)}:0"
    embedded.cluster.coordinators.move(SHARE, key, ELSEWHERE)

    def rejection():
        response = embedded.request(
            "read_share_group_state",
            0,
            ELSEWHERE,
            group_id="g",
            topics=[{"topic_id": topic_id, "partitions": [{"partition": 0}]}],
        )
        return response.results[0].partitions[0].error_code

    assert ErrorCode.coordinator_load_in_progress is rejection()
    embedded.sleep(MOVE)
    assert ErrorCode.invalid_request is rejection()  # not initialized


class TestClient:
    @pytest.fixture(params=virtual_time.BACKENDS)
    def anyio_backend(self, request):
        return virtual_time.backend(request.param)

    @pytest.mark.anyio
    async def test_consumer_continues_after_its_coordinator_has_stopped(self):
        async with EmbeddedBroker(
            brokers=3, listen=False, topics={"t": 1}, coordinator_move_time=MOVE
        ) as broker:
            consumer = ShareConsumer(
                "t",
                group_id="g",
                auto_offset_reset="earliest",
                bootstrap_servers=broker.bootstrap_servers,
                network=broker.network,
            )
            async with consumer:
                await consumer.poll(timeout=10)
                member_id = consumer.member_id
                broker.stop_broker(broker.coordinator("g"))
                assert -1 == broker.coordinator("g")

                await anyio.sleep(60)

                assert [member_id] == [m.member_id for m in broker.group("g").members]
                broker.produce("t", [b"one"])
                assert [b"one"] == [
                    each.value for each in await consumer.poll(timeout=10)
                ]


@pytest.fixture(params=BOTH)
def lone_broker(request):
    """One running broker of three, where each write needs two."""
    settings = {"min.insync.replicas": "2"}
    cluster = (
        EmbeddedBroker(brokers=3, settings=settings)
        if request.param == "embedded"
        else KafkaCluster(VERSION, brokers=3, config=settings)
    )
    with cluster:
        yield cluster


def stop_all_but(cluster, node_id):
    for other in list(cluster.brokers):
        if other != node_id:
            is_real = isinstance(cluster, KafkaCluster)
            (cluster.kill if is_real else cluster.stop_broker)(other)


@pytest.mark.newer_kafka
def test_writes_without_enough_replicas_have_no_coordinator(lone_broker):
    with BlockingClient(lone_broker.bootstrap_servers) as client:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 3}
        client.request("create_topics", 5, topics=[topic], timeout=10_000)
        node_id = until_true(
            lambda: max(client.request("find_coordinator", 3, key="g").node_id, 0),
            what="a coordinator",
        )
    with BlockingClient(lone_broker.brokers[node_id]) as client:

        def send_commit():
            return partition(client.request("offset_commit", 9, **commit("g")))

        until_true(
            lambda: send_commit() is ErrorCode.none, what="the coordinator has loaded"
        )
        stop_all_but(lone_broker, node_id)

        assert ErrorCode.coordinator_not_available is send_commit()


@pytest.mark.parametrize(
    ("api", "version", "fields", "error"),
    [
        ("join_group", 3, join, own_error),
        ("offset_commit", 9, commit, partition),
        ("share_group_heartbeat", 1, beat, own_error),
        ("alter_share_group_offsets", 0, reset, own_error),
        ("delete_share_group_offsets", 0, delete, own_error),
    ],
)
def test_new_group_cannot_be_written_without_enough_replicas(
    api, version, fields, error
):
    embedded = Embedded(brokers=3, settings={"min.insync.replicas": "2"})
    embedded.cluster.add_topic("t", [[1, 2, 3]])
    embedded.cluster.coordinators.move(GROUP, "g", HERE)
    embedded.cluster.broker_stopped(2)

    def rejection():
        return error(embedded.request(api, version, HERE, **fields("g")))

    assert ErrorCode.coordinator_not_available is not rejection()
    embedded.cluster.groups.remove("g")
    embedded.cluster.broker_stopped(3)
    assert ErrorCode.coordinator_not_available is rejection()
