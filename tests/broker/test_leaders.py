"""Leaders: broker restarts, elections, reassignments.

Leaders and epochs equal those on three brokers of Kafka 4.3.0.
"""

import anyio
import pytest

from tests.broker.call_handler import call_api, failures, make_cluster


@pytest.fixture
def cluster():
    made = make_cluster()
    made.add_topic("t", [[3, 2, 1], [1, 3, 2]])
    made.add_topic("alone", [[3]])
    return made


def leaders_of(cluster, topic="t"):
    """Return leaders and leader epochs."""
    places = cluster.topics.by_name(topic).partitions
    return [(place.leader, place.leader_epoch) for place in places]


def elect(cluster, *partitions, version=2, topic="t", **values):
    topics = [{"topic": topic, "partitions": partitions or (0,)}]
    response = call_api(
        cluster, "elect_leaders", version, topic_partitions=topics, **values
    )
    (result,) = response.replica_election_results
    return result.partition_result


def reassign(cluster, replicas, *, topic="t", index=0, version=1, **values):
    partition = {"partition_index": index, "replicas": replicas}
    response = call_api(
        cluster,
        "alter_partition_reassignments",
        version,
        topics=[{"name": topic, "partitions": [partition]}],
        **values,
    )
    return response.responses[0].partitions[0]


class Woken:
    """Records whether a task that waits for changes of the cluster is woken."""

    def __init__(self, cluster):
        self._event = anyio.Event()
        cluster.changed.add(self._event)

    def __bool__(self):
        return self._event.is_set()


def test_next_running_replica_becomes_leader(cluster):
    cluster.broker_stopped(3)

    assert [(2, 1), (1, 0)] == leaders_of(cluster)
    assert [(-1, 1)] == leaders_of(cluster, "alone")


def test_restarted_broker_does_not_become_leader(cluster):
    cluster.broker_stopped(3)
    cluster.broker_started(3)

    assert [(2, 1), (1, 0)] == leaders_of(cluster)


def test_first_restarted_replica_becomes_leader(cluster):
    cluster.broker_stopped(3)
    cluster.broker_started(3)

    assert [(3, 2)] == leaders_of(cluster, "alone")


def test_locks_are_lost_with_the_leader(cluster, monkeypatch):
    moved = []
    monkeypatch.setattr(
        cluster.share_partitions, "leader_moved", lambda *place: moved.append(place)
    )
    cluster.broker_stopped(3)

    alone, t = (cluster.topics.by_name(name).topic_id for name in ("alone", "t"))
    assert {(t, 0), (alone, 0)} == set(moved)


def test_unchanged_leader_keeps_locks(cluster, monkeypatch):
    moved = []
    monkeypatch.setattr(
        cluster.share_partitions, "leader_moved", lambda *place: moved.append(place)
    )
    cluster.move_leader("t", 0, 3)

    assert [] == moved
    assert [(3, 0), (1, 0)] == leaders_of(cluster)


def test_move_leader_adds_a_replica(cluster):
    cluster.move_leader("alone", 0, 2)

    assert [(2, 1)] == leaders_of(cluster, "alone")
    assert [2] == cluster.topics.by_name("alone").partitions[0].replicas


@pytest.mark.parametrize(
    ("topic", "partition", "node_id"), [("nope", 0, 1), ("t", 7, 1), ("t", 0, 9)]
)
def test_move_leader_of_missing_partition_raises(cluster, topic, partition, node_id):
    with pytest.raises(LookupError):
        cluster.move_leader(topic, partition, node_id)
    assert [(3, 0), (1, 0)] == leaders_of(cluster)


def test_stopped_broker_cannot_become_leader(cluster):
    cluster.broker_stopped(2)

    with pytest.raises(LookupError, match="broker 2 does not exist or is stopped"):
        cluster.move_leader("alone", 0, 2)
    assert [(3, 0)] == leaders_of(cluster, "alone")


@pytest.mark.parametrize("version", range(3))
def test_preferred_leader_is_elected(cluster, version):
    cluster.broker_stopped(3)
    cluster.broker_started(3)
    results = elect(cluster, 0, 1, version=version)

    assert [
        ("none", None),
        ("election_not_needed", "Leader election not needed for topic partition."),
    ] == failures(results)
    assert [(3, 2), (1, 0)] == leaders_of(cluster)


def test_stopped_preferred_leader_is_not_elected(cluster):
    cluster.broker_stopped(3)

    assert [
        (
            "preferred_leader_not_available",
            "The preferred leader was not available.",
        )
    ] == failures(elect(cluster))
    assert [(2, 1), (1, 0)] == leaders_of(cluster)


def test_unclean_election_is_impossible_or_not_needed(cluster):
    cluster.broker_stopped(3)

    (needless,) = elect(cluster, election_type=1)
    (hopeless,) = elect(cluster, topic="alone", election_type=1)
    assert "election_not_needed" == needless.error_code.name
    assert "eligible_leaders_not_available" == hopeless.error_code.name


def test_election_of_unknown_partition_is_rejected(cluster):
    assert [("unknown_topic_or_partition", "No such topic as nope")] == failures(
        elect(cluster, topic="nope")
    )
    assert [("unknown_topic_or_partition", "No such partition as t-9")] == failures(
        elect(cluster, 9)
    )


def test_election_of_unknown_type_is_rejected(cluster):
    topics = [{"topic": "t", "partitions": (0,)}]
    response = call_api(
        cluster, "elect_leaders", 2, topic_partitions=topics, election_type=5
    )

    assert "invalid_request" == response.error_code.name
    (result,) = response.replica_election_results[0].partition_result
    assert [("invalid_request", "Unknown election type 5")] == failures([result])


def test_election_for_all_returns_only_changes(cluster):
    cluster.broker_stopped(3)
    cluster.broker_started(3)
    response = call_api(cluster, "elect_leaders", 2, topic_partitions=None)

    reported = {
        result.topic: [each.partition_id for each in result.partition_result]
        for result in response.replica_election_results
    }
    assert {"t": [0], "alone": []} == reported


def test_reordered_replicas_keep_the_leader(cluster):
    assert not reassign(cluster, (1, 2, 3)).error_code

    assert [(3, 0), (1, 0)] == leaders_of(cluster)
    assert [1, 2, 3] == cluster.topics.by_name("t").partitions[0].replicas


def test_removed_replica_loses_leadership(cluster):
    assert not reassign(cluster, (2, 1)).error_code

    assert [(2, 1), (1, 0)] == leaders_of(cluster)


def test_removed_replica_is_fenced_by_a_new_epoch(cluster, monkeypatch):
    moved = []
    monkeypatch.setattr(
        cluster.share_partitions, "leader_moved", lambda *place: moved.append(place)
    )
    assert not reassign(cluster, (3,)).error_code

    assert [(3, 1), (1, 0)] == leaders_of(cluster)
    assert [] == moved


def test_stopped_replicas_leave_no_leader(cluster):
    cluster.broker_stopped(2)
    assert not reassign(cluster, (2,)).error_code

    assert (-1, 1) == leaders_of(cluster)[0]


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"replicas": None}, "no_reassignment_in_progress", None),
        (
            {"replicas": (1,), "topic": "nope"},
            "unknown_topic_or_partition",
            "Unable to find a topic named nope.",
        ),
        (
            {"replicas": (1,), "index": 9},
            "unknown_topic_or_partition",
            "Unable to find partition t:9.",
        ),
        (
            {"replicas": (9,)},
            "invalid_replica_assignment",
            "The manual partition assignment includes broker 9, "
            "but no such broker is registered.",
        ),
        (
            {"replicas": ()},
            "invalid_replica_assignment",
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            {"replicas": (1,), "allow_replication_factor_change": False},
            "invalid_replication_factor",
            "The replication factor is changed from 3 to 1",
        ),
    ],
)
def test_invalid_reassignment_is_rejected(cluster, fields, code, message):
    assert [(code, message)] == failures([reassign(cluster, **fields)])
    assert [3, 2, 1] == cluster.topics.by_name("t").partitions[0].replicas


def test_version_0_can_change_the_replication_factor(cluster):
    assert not reassign(cluster, (3,), version=0).error_code


def test_no_reassignments_are_listed(cluster):
    reassign(cluster, (1, 2))
    response = call_api(cluster, "list_partition_reassignments", 0, topics=None)

    assert ("none", ()) == (response.error_code.name, response.topics)


def change_by_stopping(cluster):
    cluster.broker_stopped(3)


def change_by_moving(cluster):
    cluster.move_leader("t", 0, 1)


def change_by_deleting(cluster):
    cluster.delete_topic(cluster.topics.by_name("alone"))


def change_by_growing(cluster):
    cluster.add_partitions(cluster.topics.by_name("alone"), [[1]])


def change_by_creating(cluster):
    cluster.add_topic("new", [[1]])


@pytest.mark.parametrize(
    "change",
    [
        change_by_stopping,
        change_by_moving,
        change_by_deleting,
        change_by_growing,
        change_by_creating,
    ],
)
def test_cluster_changes_wake_waiters(cluster, change):
    woken = Woken(cluster)
    assert not woken
    change(cluster)

    assert woken


def test_deleting_a_topic_deletes_its_group_state(cluster, monkeypatch):
    forgotten = []
    monkeypatch.setattr(cluster.share_partitions, "delete_topic", forgotten.append)
    monkeypatch.setattr(cluster.groups, "delete_topic", forgotten.append)
    topic = cluster.topics.by_name("alone")
    cluster.delete_topic(topic)

    assert [topic.topic_id, "alone"] == forgotten
