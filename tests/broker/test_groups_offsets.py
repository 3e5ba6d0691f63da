"""Offsets of classic groups: commits, fetches, deletions, transactions.

The embedded broker and a real Kafka return the same responses.
"""

import uuid

import pytest
from kio.schema.errors import ErrorCode

from sharecons.testing.kafka import KafkaCluster
from tests.broker.group_talk import (
    GroupTalk,
    Member,
    Producer,
    settled,
    stable,
)


@pytest.fixture
def talk(any_kafka):
    talk = GroupTalk(any_kafka)
    yield talk
    talk.close()


@pytest.fixture
def talk_by_id(any_kafka, talk):
    """Return a group whose broker has TxnOffsetCommit 6: Kafka 4.4, or the embedded."""
    if isinstance(any_kafka.cluster, KafkaCluster) and any_kafka.version < "4.4":
        pytest.skip("TxnOffsetCommit 6 came with Kafka 4.4")
    return talk


def test_offset_is_committed_in_every_version(talk):
    for version in range(2, 11):
        assert ErrorCode.none is talk.commit(version, version=version)
        assert version == talk.fetch(0)[0][0]


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_fetched_in_every_version(talk, version):
    talk.commit(7, committed_metadata="note")

    none = ErrorCode.none
    committed = (7, "note", none)
    assert {0: committed, 1: (-1, "", none), 9: (-1, "", none)} == talk.fetch(
        0, 1, 9, version=version
    )
    if version > 1:
        assert {0: committed} == talk.fetch(version=version, topics=None)


def test_invalid_commits_are_rejected(talk):
    (one,) = stable(talk, 1, (None,))

    def error(generation=one.generation, member=one.id, **fields):
        return talk.commit(1, generation, member, **fields)

    assert ErrorCode.illegal_generation is error(9)
    assert ErrorCode.unknown_member_id is error(member="x")
    assert ErrorCode.unknown_member_id is error(-1, "")
    assert ErrorCode.group_id_not_found is error(group="unknown")
    assert ErrorCode.illegal_generation is error(group="unknown", version=8)
    missing = ErrorCode.unknown_topic_or_partition
    assert missing is error(topic="unknown")
    assert missing is error(partition_index=2)
    other = uuid.uuid4()
    assert ErrorCode.unknown_topic_id is error(topic_id=other, version=10)
    assert ErrorCode.unknown_topic_id is error(topic_id=None, version=10)
    long = "x" * 4097
    assert ErrorCode.offset_metadata_too_large is error(committed_metadata=long)
    assert ErrorCode.none is error(committed_metadata=long[1:])
    assert ErrorCode.none is error(committed_metadata=None, version=10)


@pytest.mark.newer_kafka
def test_commit_larger_than_a_batch_of_the_log_is_an_unknown_error(talk):
    """Kafka has replaced INVALID_COMMIT_OFFSET_SIZE by UNKNOWN_SERVER_ERROR."""
    # One batch of `message.max.bytes`: 1,048,588.
    assert ErrorCode.none is talk.commit_many(250, "x" * 4000)
    assert ErrorCode.unknown_server_error is talk.commit_many(259, "x" * 4000)


def test_commit_creates_a_group_without_members(talk):
    assert ErrorCode.none is talk.commit(3, -1, "anybody")
    assert ErrorCode.unknown_member_id is talk.commit(3, 1, "anybody")

    (described,) = talk.describe()
    assert ("Empty", "", ErrorCode.none) == (
        described.group_state,
        described.protocol_type,
        described.error_code,
    )
    assert {0: (-1, "", ErrorCode.none)} == talk.fetch(0, group="unknown")
    assert {} == talk.fetch(group="unknown", topics=None)


def test_offsets_of_subscribed_topics_cannot_be_deleted(talk):
    (one,) = stable(talk, 1, (None,))
    talk.commit(1, one.generation, one.id)

    def error(group=None, topic=None, partition=0):
        response = talk.admin.request(
            "offset_delete",
            0,
            group_id=talk.group if group is None else group,
            topics=[
                {
                    "name": topic or talk.topic,
                    "partitions": [{"partition_index": partition}],
                }
            ],
        )
        if response.error_code:
            return response.error_code
        return response.topics[0].partitions[0].error_code

    assert ErrorCode.group_subscribed_to_topic is error()
    assert ErrorCode.unknown_topic_or_partition is error(topic="unknown")
    assert ErrorCode.unknown_topic_or_partition is error(partition=2)
    assert ErrorCode.group_id_not_found is error("unknown")
    assert ErrorCode.invalid_group_id is error("")
    one.leave()
    assert ErrorCode.none is error()
    assert {} == talk.fetch(topics=None)


@pytest.mark.parametrize("version", range(6))
def test_transaction_offsets_become_visible_on_commit(talk, version):
    talk.commit(1)
    producer = Producer(talk, version)
    if version < 5:
        producer.add()
    assert ErrorCode.none is producer.commit(2)

    assert {0: (1, "", ErrorCode.none)} == talk.fetch(0)
    unstable = {0: (-1, "", ErrorCode.unstable_offset_commit)}
    assert unstable == talk.fetch(0, stable=True)
    assert unstable == talk.fetch(stable=True, topics=None)
    producer.end(True)
    assert {0: (2, "", ErrorCode.none)} == fetch_settled(talk)
    if version < 5:
        producer.add()
    assert ErrorCode.none is producer.commit(3)
    producer.end(False)
    assert {0: (2, "", ErrorCode.none)} == fetch_settled(talk)


@pytest.mark.newer_kafka
def test_transaction_offsets_are_committed_by_topic_id(talk_by_id):
    talk = talk_by_id
    producer = Producer(talk, 6)

    assert ErrorCode.none is producer.commit(2)
    assert {0: (-1, "", ErrorCode.none)} == talk.fetch(0)
    producer.end(True)

    assert {0: (2, "", ErrorCode.none)} == fetch_settled(talk)


@pytest.mark.newer_kafka
def test_transaction_offsets_of_unknown_topic_id_or_group_are_rejected(talk_by_id):
    producer = Producer(talk_by_id, 6)

    assert ErrorCode.unknown_topic_id is producer.commit(2, topic_id=uuid.uuid4())
    assert ErrorCode.unknown_topic_id is producer.commit(2, topic_id=None)
    assert ErrorCode.group_id_not_found is producer.commit(2, 1, "x", group="unknown")


@pytest.mark.newer_kafka
def test_commits_of_a_replaced_static_member_are_fenced(talk):
    instance = f"instance-{uuid.uuid4().hex[:8]}"
    (old,) = stable(talk, 1, (instance,))
    Member(talk, instance).join()
    producer = Producer(talk, 5)

    old_member = (1, old.generation, old.id)
    assert ErrorCode.fenced_instance_id is talk.commit(*old_member, instance=instance)
    assert ErrorCode.fenced_instance_id is producer.commit(
        *old_member, instance=instance
    )


def fetch_settled(talk):
    """Return the offsets once a real Kafka has written its markers."""
    unstable = {ErrorCode.unstable_offset_commit}
    return settled(lambda: talk.fetch(0, stable=True), lambda f: f[0][2], unstable)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (3, ErrorCode.invalid_txn_state),
        (4, ErrorCode.transaction_abortable),
    ],
)
def test_group_not_added_to_transaction_is_rejected(talk, version, expected):
    producer = Producer(talk, version)

    assert expected is producer.commit(2)


def test_transaction_offsets_of_unknown_member_are_rejected(talk):
    (one,) = stable(talk, 1, (None,))
    producer = Producer(talk, 5)

    assert ErrorCode.illegal_generation is producer.commit(2, 9, one.id)
    assert ErrorCode.unknown_member_id is producer.commit(2, one.generation, "x")
    assert ErrorCode.none is producer.commit(2, one.generation, one.id)
    assert ErrorCode.none is producer.commit(2)
    assert ErrorCode.illegal_generation is producer.commit(2, 1, "x", group="unknown")
    assert ErrorCode.invalid_group_id is producer.commit(2, group="")
    producer.end(False)
