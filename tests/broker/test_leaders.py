"""Leaders: broker restarts and elections.

Leaders and epochs equal those on three brokers of Kafka 4.3.0.
"""

import anyio
import pytest

from tests.broker.call_handler import make_cluster


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
