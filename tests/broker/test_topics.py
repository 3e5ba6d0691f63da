"""CreateTopics, CreatePartitions, DeleteTopics, with Kafka 4.3.0's messages."""

import uuid

import pytest

from sharecons.testing.broker.topics import Topics, topic_name_error
from tests.broker.call_handler import call_api, failures, make_cluster

ALONE = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
BY_HAND = {"num_partitions": -1, "replication_factor": -1, "configs": []}


def create(cluster, version=7, validate_only=False, **topic):
    (result,) = call_api(
        cluster,
        "create_topics",
        version,
        topics=[{**ALONE, **topic}],
        validate_only=validate_only,
    ).topics
    return result


def delete(cluster, version=6, **values):
    return call_api(cluster, "delete_topics", version, **values).responses


def grow(cluster, version=3, validate_only=False, **topic):
    (result,) = call_api(
        cluster,
        "create_partitions",
        version,
        topics=[{"assignments": None, **topic}],
        validate_only=validate_only,
    ).results
    return result


def replicas(cluster, topic):
    return [place.replicas for place in cluster.topics.by_name(topic).partitions]


def by_hand(*assignments):
    return [
        {"partition_index": index, "broker_ids": nodes} for index, nodes in assignments
    ]


@pytest.mark.parametrize("version", range(2, 8))
def test_topic_is_created_in_every_version(version):
    cluster = make_cluster()
    result = create(cluster, version, name="t", num_partitions=2)

    assert not result.error_code
    assert [[1], [2]] == replicas(cluster, "t")
    if version >= 5:
        assert (2, 1) == (result.num_partitions, result.replication_factor)
    if version >= 7:
        assert cluster.topics.by_id(result.topic_id).name == "t"


def test_validate_only_creates_nothing():
    cluster = make_cluster()
    result = create(cluster, name="t", num_partitions=4, validate_only=True)

    assert (4, 1) == (result.num_partitions, result.replication_factor)
    assert cluster.topics.by_name("t") is None


def test_omitted_numbers_are_broker_defaults():
    cluster = make_cluster(num_partitions="5", default_replication_factor="2")
    result = create(cluster, name="t", num_partitions=-1, replication_factor=-1)

    assert (5, 2) == (result.num_partitions, result.replication_factor)


def test_manual_assignment_is_used():
    cluster = make_cluster()
    create(cluster, **BY_HAND, name="t", assignments=by_hand((1, [2, 3]), (0, [3, 1])))

    assert [[3, 1], [2, 3]] == replicas(cluster, "t")


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        (
            {"num_partitions": 0},
            "invalid_partitions",
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            {"replication_factor": 0, "num_partitions": 0},
            "invalid_replication_factor",
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            {"replication_factor": 4},
            "invalid_replication_factor",
            "Unable to replicate the partition 4 time(s): The target replication "
            "factor of 4 cannot be reached because only 3 broker(s) are registered or "
            "some brokers have all their log directories cordoned.",
        ),
        (
            {**BY_HAND, "assignments": by_hand((0, [1]), (2, [1]))},
            "invalid_replica_assignment",
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            {**BY_HAND, "assignments": by_hand((0, [1]), (0, [2]))},
            "invalid_replica_assignment",
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            {**BY_HAND, "assignments": by_hand((0, [9]))},
            "invalid_replica_assignment",
            "The manual partition assignment includes broker 9, but no such broker is "
            "registered.",
        ),
        (
            {**BY_HAND, "assignments": by_hand((0, [1, 1]))},
            "invalid_replica_assignment",
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            {**BY_HAND, "assignments": by_hand((0, []))},
            "invalid_replica_assignment",
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            {**BY_HAND, "assignments": by_hand((0, [1]), (1, [1, 2]))},
            "invalid_replica_assignment",
            "The manual partition assignment includes a partition with 2 replica(s), "
            "but this is not consistent with previous partitions, which have "
            "1 replica(s).",
        ),
        (
            {**BY_HAND, "num_partitions": 1, "assignments": by_hand((0, [1]))},
            "invalid_request",
            "A manual partition assignment was specified, but numPartitions was not "
            "set to -1.",
        ),
        (
            {**BY_HAND, "replication_factor": 1, "assignments": by_hand((0, [1]))},
            "invalid_request",
            "A manual partition assignment was specified, but replication factor was "
            "not set to -1.",
        ),
        (
            {"name": "__cluster_metadata"},
            "invalid_request",
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            {"configs": [{"name": "retention.ms", "value": None}]},
            "invalid_config",
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            {"configs": [{"name": "nonsense", "value": "5"}]},
            "invalid_config",
            "Unknown topic config name: nonsense",
        ),
        (
            {"configs": [{"name": "retention.ms", "value": "-7"}]},
            "invalid_config",
            "Invalid value -7 for configuration retention.ms: "
            "Value must be at least -1",
        ),
    ],
)
def test_invalid_topic_is_rejected_with_reason(fields, code, message):
    cluster = make_cluster()
    result = create(cluster, **{"name": "t", **fields})

    assert [(code, message)] == failures([result])
    assert (-1, -1, ()) == (
        result.num_partitions,
        result.replication_factor,
        result.configs,
    )
    assert not list(cluster.topics)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a b", "'a b' contains one or more characters other than "
         "ASCII alphanumerics, '.', '_' and '-'"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed "
         "length 249"),
    ],
)  # fmt: skip
def test_invalid_topic_name_is_rejected(name, reason):
    result = create(make_cluster(), name=name)

    expected = ("invalid_topic_exception", f"Topic name is invalid: {reason}")
    assert [expected] == failures([result])


@pytest.mark.parametrize("name", ["a", "A-1", "...", "x" * 249, "_._", "__x"])
def test_valid_topic_name_has_no_error(name):
    assert topic_name_error(name) is None


def test_names_with_equal_metrics_collide():
    topics = Topics()
    topics.create("a.b_c", [[1]])
    topics.create("abc", [[1]])

    assert "a.b_c" == topics.find_collision("a_b.c").name
    assert topics.find_collision("a-b-c") is None
    assert topics.find_collision("a_bc") is None


@pytest.mark.parametrize(
    "fields",
    [
        {"num_partitions": 10_001},
        {"num_partitions": 2**31 - 1},
    ],
)
def test_more_than_ten_thousand_partitions_are_rejected(fields):
    result = create(make_cluster(), name="t", **fields)

    assert "policy_violation" == result.error_code.name
    assert "Excessively large number of partitions per request." in (
        result.error_message
    )


def test_existing_topic_is_not_created():
    cluster = make_cluster()
    created = create(cluster, name="t")
    again = create(cluster, name="t")

    assert [("topic_already_exists", "Topic 't' already exists.")] == failures([again])
    assert created.topic_id == cluster.topics.by_name("t").topic_id


def test_duplicate_name_in_request_is_rejected():
    cluster = make_cluster()
    twice = [{**ALONE, "name": "t"}, {**ALONE, "name": "t"}]
    results = call_api(cluster, "create_topics", 7, topics=twice).topics

    assert [("invalid_request", "Duplicate topic name.")] == failures(results)
    assert not list(cluster.topics)


def test_created_topic_returns_its_settings():
    result = create(
        make_cluster(), name="t", configs=[{"name": "retention.ms", "value": "77"}]
    )

    configs = {each.name: each for each in result.configs}
    assert "77" == configs["retention.ms"].value
    assert "delete" == configs["cleanup.policy"].value
    assert 1 == configs["retention.ms"].config_source  # the topic's own
    assert 5 == configs["cleanup.policy"].config_source  # the default


def test_partitions_are_appended():
    cluster = make_cluster()
    create(cluster, name="t", num_partitions=2, replication_factor=2)
    before = list(cluster.topics.by_name("t").partitions)
    result = grow(cluster, name="t", count=4)

    assert [("none", None)] == failures([result])
    assert before == cluster.topics.by_name("t").partitions[:2]
    assert [[1, 2], [2, 3], [3, 1], [1, 2]] == replicas(cluster, "t")


def test_added_partition_uses_manual_assignment():
    cluster = make_cluster()
    create(cluster, name="t")
    grow(cluster, name="t", count=2, assignments=[{"broker_ids": [3]}])

    assert [[1], [3]] == replicas(cluster, "t")


def test_validate_only_adds_no_partition():
    cluster = make_cluster()
    create(cluster, name="t")

    assert not grow(cluster, name="t", count=3, validate_only=True).error_code
    assert 1 == len(cluster.topics.by_name("t").partitions)


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"count": 2}, "invalid_partitions", "Topic already has 2 partition(s)."),
        (
            {"count": 1},
            "invalid_partitions",
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        ({"name": "nope", "count": 3}, "unknown_topic_or_partition", None),
        (
            {"count": 4, "assignments": [{"broker_ids": [1]}]},
            "invalid_replica_assignment",
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) "
            "were specified.",
        ),
        (
            {"count": 3, "assignments": [{"broker_ids": [1, 2]}]},
            "invalid_replica_assignment",
            "The manual partition assignment includes a partition with 2 replica(s), "
            "but this is not consistent with previous partitions, which have "
            "1 replica(s).",
        ),
    ],
)
def test_invalid_partition_count_or_assignment_is_rejected(fields, code, message):
    cluster = make_cluster()
    create(cluster, name="t", num_partitions=2)
    result = grow(cluster, **{"name": "t", **fields})

    assert [(code, message)] == failures([result])
    assert 2 == len(cluster.topics.by_name("t").partitions)


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name_in_older_versions(version):
    cluster = make_cluster()
    create(cluster, name="t")
    gone, unknown = sorted(
        delete(cluster, version, topic_names=["t", "nope"]), key=lambda r: r.error_code
    )

    assert ("t", 0) == (gone.name, gone.error_code)
    assert ("nope", 3) == (unknown.name, unknown.error_code)
    assert not list(cluster.topics)


def test_topics_are_deleted_by_name_and_by_id():
    cluster = make_cluster()
    create(cluster, name="kept")
    by_id = create(cluster, name="a").topic_id
    create(cluster, name="b")
    results = delete(
        cluster,
        topics=[{"name": None, "topic_id": by_id}, {"name": "b", "topic_id": None}],
    )

    assert [("a", 0), ("b", 0)] == [(each.name, each.error_code) for each in results]
    assert ["kept"] == [topic.name for topic in cluster.topics]


def test_delete_needs_exactly_one_of_name_and_id():
    cluster = make_cluster()
    topic_id = create(cluster, name="t").topic_id
    named, known = {"name": "t", "topic_id": None}, {"name": None, "topic_id": topic_id}

    def error_of(*topics):
        return failures(delete(cluster, topics=topics))

    code = "invalid_request"
    assert error_of({"name": None, "topic_id": None}) == [
        (code, "Neither topic name nor id were specified.")
    ]
    assert error_of({"name": "t", "topic_id": topic_id}) == [
        (code, "You may not specify both topic name and topic id.")  # prose: ok
    ]
    assert error_of(named, named) == [(code, "Duplicate topic name.")]
    assert error_of(known, known) == [(code, "Duplicate topic id.")]
    assert error_of(named, known) == [
        (code, "The provided topic name maps to an ID that was already supplied.")
    ]
    assert error_of({"name": None, "topic_id": uuid.UUID(int=5)}) == [
        ("unknown_topic_id", "This server does not host this topic ID.")
    ]
    assert cluster.topics.by_name("t") is not None


def test_deletion_can_be_disabled():
    cluster = make_cluster(delete_topic_enable="false")
    create(cluster, name="t")

    (result,) = delete(cluster, topics=[{"name": "t", "topic_id": None}])
    assert "topic_deletion_disabled" == result.error_code.name
    (result,) = delete(cluster, 2, topic_names=["t"])
    assert "invalid_request" == result.error_code.name
    assert cluster.topics.by_name("t") is not None


def test_recreated_topic_has_another_id():
    cluster = make_cluster()
    first = create(cluster, name="t").topic_id
    delete(cluster, 5, topic_names=["t"])
    second = create(cluster, name="t").topic_id

    assert first != second
    assert cluster.topics.by_id(first) is None
