"""Metadata: requests, topics and the leaders of partitions."""

import math

import pytest

from sharecons.errors import ConnectionFailedError
from sharecons.protocol.codes import Code
from sharecons.protocol.group.messages import (
    MetadataRequest,
    MetadataResponse,
    TopicDescription,
)
from sharecons.protocol.group.metadata import (
    MAX_FORMER_NAMES,
    REFRESH_INTERVAL,
    Metadata,
    TopicError,
)
from sharecons.protocol.partitions import Endpoint, PartitionLeader, SharePartition
from tests.census import entries_of
from tests.protocol.message_factories import NO_LEADER, P0, P1, TOPIC, TOPIC_ID

LOST = ConnectionFailedError("the connection broke")
BROKERS = {node: Endpoint(f"broker-{node}", 9092) for node in (0, 1, 2)}
OTHER_ID = bytes([8] * 16)
OTHER = SharePartition(OTHER_ID, 0)


def topic(
    *leaders: tuple[int, int],
    name: str | None = TOPIC,
    topic_id: bytes | None = TOPIC_ID,
    error: int = 0,
) -> TopicDescription:
    """Return a topic whose partitions have these leaders and leader epochs."""
    return TopicDescription(
        error=error,
        name=name,
        topic_id=topic_id,
        leaders={i: PartitionLeader(*leader) for i, leader in enumerate(leaders)},
    )


def absent(
    name: str = TOPIC, error: int = Code.UNKNOWN_TOPIC_OR_PARTITION
) -> TopicDescription:
    return topic(name=name, topic_id=None, error=error)


def described(
    *topics: TopicDescription, brokers: dict[int, Endpoint] | None = None
) -> MetadataResponse:
    return MetadataResponse(
        brokers=BROKERS if brokers is None else brokers, topics=topics
    )


def next_request(metadata: Metadata, now: float) -> MetadataRequest:
    """Return the request that must be due."""
    request = metadata.next_request(now)
    assert request is not None
    return request


def exchange(
    metadata: Metadata, response: MetadataResponse, now: float = 0.0
) -> MetadataRequest:
    request = next_request(metadata, now)
    metadata.on_response(request, response, now)
    return request


def metadata_with(*leaders: tuple[int, int]) -> Metadata:
    """Return metadata of the topic with these leaders, with all partitions assigned."""
    metadata = Metadata()
    metadata.set_subscription((TOPIC,), now=0.0)
    exchange(metadata, described(topic(*leaders)))
    partitions = (SharePartition(TOPIC_ID, i) for i in range(len(leaders)))
    metadata.set_assignment(frozenset(partitions), now=0.0)
    return metadata


def test_nothing_is_requested_without_subscription():
    metadata = Metadata()

    assert metadata.next_request(now=1e9) is None
    assert math.inf == metadata.next_deadline(now=0.0)


# Requests and their times.


def test_subscribed_topics_are_requested_immediately_by_name():
    metadata = Metadata()

    metadata.set_subscription((TOPIC, "refunds"), now=3.0)

    assert 3.0 == metadata.next_deadline(now=3.0)
    assert MetadataRequest(names=(TOPIC, "refunds"), ids=()) == next_request(
        metadata, now=3.0
    )


def test_complete_metadata_is_refreshed_after_a_while():
    metadata = metadata_with((1, 5))

    assert metadata.next_request(now=REFRESH_INTERVAL - 1.0) is None
    assert REFRESH_INTERVAL == metadata.next_deadline(now=0.0)
    assert next_request(metadata, now=REFRESH_INTERVAL)


def test_topics_subscribed_during_a_request_are_requested_after_it():
    metadata = Metadata()
    metadata.set_subscription((TOPIC,), now=0.0)
    in_flight = next_request(metadata, now=0.0)

    metadata.set_subscription(("refunds",), now=0.1)
    metadata.on_response(in_flight, described(topic((1, 5))), now=0.2)

    assert ("refunds",) == next_request(metadata, now=0.3).names


def test_topics_subscribed_during_a_lost_request_are_requested_after_it():
    metadata = Metadata()
    metadata.set_subscription((TOPIC,), now=0.0)
    in_flight = next_request(metadata, now=0.0)

    metadata.set_subscription(("refunds",), now=0.1)
    metadata.on_error(in_flight, LOST, now=0.2)

    assert ("refunds",) == next_request(metadata, now=0.3).names


def test_lost_request_is_repeated_with_growing_pauses():
    metadata = Metadata()
    metadata.set_subscription((TOPIC,), now=0.0)
    pauses = []
    now = 0.0
    for _ in range(8):
        metadata.on_error(next_request(metadata, now), LOST, now)
        pauses.append(metadata.next_deadline(now) - now)
        now = metadata.next_deadline(now)

    assert sorted(pauses) == pytest.approx(pauses)
    assert (0.05, 1.0) == (pauses[0], pytest.approx(pauses[-1]))


# Missing topics.


def test_missing_topic_is_reported_once_and_requested_until_it_appears():
    metadata = Metadata()
    metadata.set_subscription((TOPIC,), now=0.0)
    exchange(metadata, described(absent()))
    now = metadata.next_deadline(now=0.0)
    exchange(metadata, described(absent()), now)
    topic_errors, metadata.topic_errors = metadata.topic_errors, []
    now = metadata.next_deadline(now)
    before = metadata.has_new_topics
    exchange(metadata, described(topic((1, 5))), now)

    assert now < 1.0
    assert [TopicError(TOPIC, Code.UNKNOWN_TOPIC_OR_PARTITION)] == topic_errors
    assert [TopicError(TOPIC, Code.NONE)] == metadata.topic_errors
    assert (False, True) == (before, metadata.has_new_topics)
    assert now + REFRESH_INTERVAL == metadata.next_deadline(now)


def test_changed_error_of_a_topic_is_reported():
    metadata = Metadata()
    metadata.set_subscription((TOPIC,), now=0.0)
    exchange(metadata, described(absent()))

    forbidden = absent(error=Code.TOPIC_AUTHORIZATION_FAILED)
    exchange(metadata, described(forbidden), now=1.0)

    codes = (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.TOPIC_AUTHORIZATION_FAILED)
    assert [TopicError(TOPIC, code) for code in codes] == metadata.topic_errors


def test_error_of_a_topic_is_reported_again_after_a_new_subscription():
    metadata = Metadata()
    for turn in range(2):
        metadata.set_subscription((TOPIC,), now=float(turn))
        exchange(metadata, described(absent()), now=float(turn))

    code = Code.UNKNOWN_TOPIC_OR_PARTITION
    assert [TopicError(TOPIC, code)] * 2 == metadata.topic_errors


def test_error_of_an_unsubscribed_topic_is_not_reported():
    metadata = Metadata()
    metadata.set_subscription((TOPIC,), now=0.0)

    exchange(metadata, described(topic((1, 5)), absent("refunds")))

    assert [] == metadata.topic_errors


# Leaders.


def test_assigned_partitions_are_grouped_by_leader():
    metadata = metadata_with((1, 5), (2, 5), (1, 3))

    assert {
        1: frozenset({P0, SharePartition(TOPIC_ID, 2)}),
        2: frozenset({P1}),
    } == metadata.leaders()


def test_partitions_of_another_topic_hide_no_leader():
    """The assignment has the former topics until the coordinator replaces it."""
    numbers = range(20)
    metadata = metadata_with(*[(1, 5) for _ in numbers])
    former = topic(*[(2, 1) for _ in numbers], name="former", topic_id=OTHER_ID)
    mine = {SharePartition(TOPIC_ID, n) for n in numbers}
    others = {SharePartition(OTHER_ID, n) for n in numbers}

    metadata.set_assignment(frozenset(mine | others), now=1.0)
    exchange(metadata, described(topic(*[(1, 5) for _ in numbers]), former), now=1.0)

    assert {1: frozenset(mine)} == metadata.leaders()


def test_metadata_is_requested_for_a_partition_whose_leader_is_no_known_broker():
    metadata = metadata_with((7, 5))

    assert {} == metadata.leaders()
    assert next_request(metadata, now=0.0)


@pytest.mark.parametrize("newer", [frozenset({P0}), frozenset()])
def test_assignment_replaced_while_metadata_is_requested_has_only_its_leaders(newer):
    metadata = metadata_with((1, 5))
    metadata.set_assignment(frozenset({OTHER}), now=1.0)
    request = next_request(metadata, now=1.0)

    metadata.set_assignment(newer, now=1.1)
    metadata.on_response(request, described(topic((2, 1), topic_id=OTHER_ID)), 1.2)

    assert set(newer) == set().union(*metadata.leaders().values())


def test_requests_alternate_between_names_and_ids_while_an_id_is_unknown():
    metadata = metadata_with((1, 5))
    metadata.set_assignment(frozenset({P0, OTHER}), now=1.0)
    requests = []
    now = 1.0
    for _ in range(4):
        requests.append(exchange(metadata, described(topic((1, 5))), now))
        now = metadata.next_deadline(now)

    by_name = MetadataRequest(names=(TOPIC,), ids=())
    by_id = MetadataRequest(names=(), ids=(OTHER_ID,))
    assert [by_id, by_name, by_id, by_name] == requests
    assert now < 4.0


def test_topic_description_without_a_name_is_ignored():
    metadata = metadata_with((1, 5))
    metadata.set_assignment(frozenset({OTHER}), now=1.0)

    unknown = topic(name=None, topic_id=OTHER_ID, error=Code.UNKNOWN_TOPIC_ID)
    exchange(metadata, described(unknown), now=1.0)

    assert {} == metadata.leaders()
    assert {TOPIC_ID: TOPIC} == metadata.topic_names


def test_metadata_with_an_older_leader_epoch_is_ignored():
    metadata = metadata_with((1, 5))
    metadata.on_leader_moved(P0, PartitionLeader(2, 6), now=1.0)

    exchange(metadata, described(topic((1, 5))), now=REFRESH_INTERVAL)

    assert {2: frozenset({P0})} == metadata.leaders()


def recreate(metadata: Metadata, number: int) -> bytes:
    """Delete the topic and create it again, with partitions that move; return its id.

    The coordinator assigns the new partitions after the metadata has arrived.
    """
    topic_id = number.to_bytes(16, "big")
    now = 1000.0 * (number + 1)
    leaders = {0: (1, 5), 1: (2, 5)}
    exchange(metadata, described(topic(*leaders.values(), topic_id=topic_id)), now)
    partitions = frozenset(SharePartition(topic_id, each) for each in leaders)
    metadata.set_assignment(partitions, now)
    for each in partitions:
        metadata.on_leader_moved(each, PartitionLeader(0, 6), now)
    return topic_id


def test_topics_that_are_deleted_and_created_again_leave_nothing():
    metadata = metadata_with((1, 5))
    for number in range(2 * MAX_FORMER_NAMES):
        recreate(metadata, number)
    early = entries_of(metadata)
    for number in range(2 * MAX_FORMER_NAMES, 10 * MAX_FORMER_NAMES):
        recreate(metadata, number)

    assert entries_of(metadata) == early


def test_names_of_former_topics_are_kept_for_held_records():
    metadata = metadata_with((1, 5))
    former = recreate(metadata, 1)
    for number in range(2, MAX_FORMER_NAMES):
        recreate(metadata, number)

    assert TOPIC == metadata.topic_names[former]


def test_leaders_of_assigned_partitions_are_kept_while_their_topic_is_not_described():
    metadata = metadata_with((1, 5))

    exchange(metadata, described(absent()), now=REFRESH_INTERVAL)

    assert {1: frozenset({P0})} == metadata.leaders()


# New leaders in responses of other requests.


@pytest.mark.parametrize("node", [0, 2])
def test_newer_leader_is_used_immediately_without_a_request(node: int):
    metadata = metadata_with((1, 5))

    metadata.on_leader_moved(P0, PartitionLeader(node, 6), now=1.0)

    assert {node: frozenset({P0})} == metadata.leaders()
    assert metadata.next_request(now=REFRESH_INTERVAL - 1.0) is None


def test_leader_with_node_0_and_epoch_0_is_valid():
    metadata = metadata_with((1, 5))
    metadata.set_assignment(frozenset({OTHER}), now=1.0)

    metadata.on_leader_moved(OTHER, PartitionLeader(0, 0), now=1.0)

    assert {0: frozenset({OTHER})} == metadata.leaders()


def test_response_without_a_leader_removes_the_leader_and_requests_metadata():
    metadata = metadata_with((1, 5))

    metadata.on_leader_moved(P0, NO_LEADER, now=1.0)

    assert {} == metadata.leaders()
    assert 1.0 < metadata.next_deadline(now=1.0) <= 1.05


@pytest.mark.parametrize("epoch", [4, 5])
def test_leader_that_is_not_newer_is_ignored_and_metadata_is_requested(epoch: int):
    metadata = metadata_with((1, 5))

    metadata.on_leader_moved(P0, PartitionLeader(2, epoch), now=1.0)

    assert {1: frozenset({P0})} == metadata.leaders()
    assert next_request(metadata, now=1.1)


def test_newer_leader_with_a_known_endpoint_is_used():
    metadata = metadata_with((1, 5))

    metadata.update_endpoints({7: Endpoint("broker-7", 9092)})
    metadata.on_leader_moved(P0, PartitionLeader(7, 6), now=1.0)

    assert {7: frozenset({P0})} == metadata.leaders()


def test_metadata_restores_a_removed_leader():
    metadata = metadata_with((1, 5))
    metadata.on_leader_moved(P0, NO_LEADER, now=1.0)

    exchange(metadata, described(topic((1, 5))), now=1.1)

    assert {1: frozenset({P0})} == metadata.leaders()


# Failures.


def test_two_failures_request_metadata_once():
    metadata = metadata_with((1, 5))

    metadata.mark_stale(now=1.0)
    metadata.mark_stale(now=1.04)

    assert 1.05 == metadata.next_deadline(now=1.04)


def test_failure_after_unsubscribing_requests_nothing():
    metadata = metadata_with((1, 5))
    metadata.set_subscription((), now=1.0)
    metadata.set_assignment(frozenset(), now=1.0)

    metadata.mark_stale(now=2.0)

    assert math.inf == metadata.next_deadline(now=2.0)


def test_failure_during_a_request_causes_another_request():
    metadata = metadata_with((1, 5))
    in_flight = next_request(metadata, now=REFRESH_INTERVAL)

    metadata.on_leader_moved(P0, NO_LEADER, now=REFRESH_INTERVAL + 0.1)
    metadata.on_response(
        in_flight, described(topic((1, 5))), now=REFRESH_INTERVAL + 0.2
    )

    assert metadata.next_deadline(now=REFRESH_INTERVAL + 0.2) < REFRESH_INTERVAL + 1.0
