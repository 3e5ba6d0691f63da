"""Metadata and DescribeCluster, with the responses of Kafka 4.3.0."""

import uuid

import pytest

from tests.broker.call_handler import call_api, make_cluster

NO_OPERATIONS = -(1 << 31)


@pytest.fixture
def cluster():
    made = make_cluster()
    made.add_topic("t", [[3, 1], [2, 3]])
    made.add_topic("alone", [[2]])
    return made


def metadata(cluster, version=12, *names, **values):
    topics = [{"name": name, "topic_id": None} for name in names]
    if version < 10:
        topics = [{"name": name} for name in names]
    return call_api(cluster, "metadata", version, **{"topics": topics, **values})


def by_id(cluster, version, *ids):
    topics = [{"name": None, "topic_id": each} for each in ids]
    return call_api(cluster, "metadata", version, topics=topics).topics


def codes(topics):
    return [(each.name, each.error_code.name) for each in topics]


@pytest.mark.parametrize("version", range(14))
def test_every_version_returns_leaders_and_unknown_topics(version):
    cluster = make_cluster()
    cluster.add_topic("t", [[3, 1], [2, 3]])
    flags = {"allow_auto_topic_creation": False} if version >= 4 else {}
    response = metadata(cluster, version, "t", "nope", "a b", **flags)

    assert [1, 2, 3] == [broker.node_id for broker in response.brokers]
    assert [("localhost", 9092)] == [(b.host, b.port) for b in response.brokers[:1]]
    expected = [
        ("t", "none"),
        ("nope", "unknown_topic_or_partition"),
        ("a b", "invalid_topic_exception"),
    ]
    assert expected == codes(response.topics)
    partitions = response.topics[0].partitions
    assert [3, 2] == [each.leader_id for each in partitions]
    assert [(3, 1), (2, 3)] == [each.replica_nodes for each in partitions]
    assert [(3, 1), (2, 3)] == [each.isr_nodes for each in partitions]
    if version >= 1:
        assert 1 == response.controller_id
    if version >= 2:
        assert cluster.cluster_id == response.cluster_id


def test_null_returns_all_topics(cluster):
    everything = metadata(cluster, 12, topics=None).topics

    assert ["t", "alone"] == [each.name for each in everything]
    assert () == metadata(cluster, 12).topics


def test_empty_list_in_version_0_returns_all_topics(cluster):
    assert ["t", "alone"] == [each.name for each in metadata(cluster, 0).topics]
    assert () == metadata(cluster, 1).topics


def test_topics_are_found_by_id(cluster):
    topic_id, unknown = cluster.topics.by_name("t").topic_id, uuid.UUID(int=5)
    found = by_id(cluster, 12, topic_id, unknown)

    assert [("t", "none"), (None, "unknown_topic_id")] == codes(found)
    assert [topic_id, unknown] == [each.topic_id for each in found]


@pytest.mark.parametrize("version", [10, 11])
def test_ids_in_old_versions_are_rejected(cluster, version):
    topic_id = cluster.topics.by_name("t").topic_id

    (found,) = by_id(cluster, version, topic_id)
    assert ("", "invalid_request") == codes([found])[0]
    assert topic_id == found.topic_id


def test_one_id_makes_all_lookups_by_id(cluster):
    topic_id = cluster.topics.by_name("t").topic_id
    mixed = [{"name": None, "topic_id": topic_id}, {"name": "alone", "topic_id": None}]

    assert [("t", "none")] == codes(
        call_api(cluster, "metadata", 12, topics=mixed).topics
    )


def test_topic_without_name_and_id_is_an_error(cluster):
    (found,) = by_id(cluster, 12, None)

    assert [("", "unknown_server_error")] == codes([found])


def test_duplicate_topic_is_returned_once(cluster):
    assert ["alone"] == [e.name for e in metadata(cluster, 12, "alone", "alone").topics]


def test_topic_is_auto_created_if_allowed_and_requested():
    cluster = make_cluster(auto_create_topics_enable="true", num_partitions="2")
    flags = {"allow_auto_topic_creation": True}
    first = metadata(cluster, 12, "new", "a b", **flags)
    second = metadata(cluster, 12, "new", **flags)

    assert [
        ("new", "unknown_topic_or_partition"),
        ("a b", "invalid_topic_exception"),
    ] == codes(first.topics)
    assert [("new", "none")] == codes(second.topics)
    assert 2 == len(second.topics[0].partitions)


@pytest.mark.parametrize(("allowed", "requested"), [("true", False), ("false", True)])
def test_topic_is_not_auto_created_otherwise(allowed, requested):
    cluster = make_cluster(auto_create_topics_enable=allowed)
    metadata(cluster, 12, "new", allow_auto_topic_creation=requested)

    assert cluster.topics.by_name("new") is None


def test_topic_that_cannot_be_created_stays_unknown():
    cluster = make_cluster(
        auto_create_topics_enable="true", default_replication_factor="9"
    )

    for _ in range(2):
        found = metadata(cluster, 12, "new", allow_auto_topic_creation=True).topics
        assert [("new", "unknown_topic_or_partition")] == codes(found)


def test_first_versions_auto_create_topics():
    cluster = make_cluster(auto_create_topics_enable="true")
    metadata(cluster, 3, "new")

    assert cluster.topics.by_name("new") is not None


def test_authorized_operations_are_returned_on_request(cluster):
    flags = {"include_topic_authorized_operations": True}
    known, unknown = metadata(cluster, 12, "t", "nope", **flags).topics
    (silent,) = metadata(cluster, 12, "t").topics

    assert [3576, 3576] == [
        each.topic_authorized_operations for each in (known, unknown)
    ]
    assert NO_OPERATIONS == silent.topic_authorized_operations


def test_cluster_operations_are_in_versions_8_to_10(cluster):
    flags = {"include_cluster_authorized_operations": True}

    for version in (8, 9, 10):
        response = metadata(cluster, version, **flags)
        assert 8096 == response.cluster_authorized_operations
        silent = metadata(cluster, version)
        assert NO_OPERATIONS == silent.cluster_authorized_operations


def test_stopped_broker_is_missing_and_its_replicas_offline(cluster):
    cluster.broker_stopped(3)
    response = metadata(cluster, 12, "t")

    assert [1, 2] == [broker.node_id for broker in response.brokers]
    first, second = response.topics[0].partitions
    assert (1, 1, (3, 1), (1,), (3,)) == (
        first.leader_id,
        first.leader_epoch,
        first.replica_nodes,
        first.isr_nodes,
        first.offline_replicas,
    )
    assert (2, 0, (2,)) == (second.leader_id, second.leader_epoch, second.isr_nodes)


def test_partition_without_running_replica_has_no_leader(cluster):
    cluster.broker_stopped(2)
    (place,) = metadata(cluster, 12, "alone").topics[0].partitions

    assert "leader_not_available" == place.error_code.name
    assert (-1, 1, (2,), (), (2,)) == (
        place.leader_id,
        place.leader_epoch,
        place.replica_nodes,
        place.isr_nodes,
        place.offline_replicas,
    )


def test_version_0_omits_stopped_replicas(cluster):
    cluster.broker_stopped(3)
    first, second = metadata(cluster, 0, "t").topics[0].partitions

    assert ("replica_not_available", (1,)) == (
        first.error_code.name,
        first.replica_nodes,
    )
    assert ("replica_not_available", (2,)) == (
        second.error_code.name,
        second.replica_nodes,
    )


def test_controller_is_a_running_broker(cluster):
    cluster.broker_stopped(1)

    assert 2 == metadata(cluster, 12).controller_id
    assert 2 == call_api(cluster, "describe_cluster", 1).controller_id


@pytest.mark.parametrize("version", range(3))
def test_cluster_is_described_in_every_version(cluster, version):
    response = call_api(
        cluster,
        "describe_cluster",
        version,
        include_cluster_authorized_operations=True,
    )

    assert cluster.cluster_id == response.cluster_id
    assert [1, 2, 3] == [broker.broker_id for broker in response.brokers]
    assert 8096 == response.cluster_authorized_operations


def test_stopped_brokers_are_fenced_on_request(cluster):
    cluster.broker_stopped(3)
    living = call_api(cluster, "describe_cluster", 2)
    every = call_api(cluster, "describe_cluster", 2, include_fenced_brokers=True)

    assert [1, 2] == [broker.broker_id for broker in living.brokers]
    assert [False, False, True] == [broker.is_fenced for broker in every.brokers]


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, "mismatched_endpoint_type"), (7, "unsupported_endpoint_type")],
)
def test_controllers_endpoint_type_is_rejected(cluster, endpoint_type, code):
    response = call_api(cluster, "describe_cluster", 1, endpoint_type=endpoint_type)

    assert (code, ()) == (response.error_code.name, response.brokers)
