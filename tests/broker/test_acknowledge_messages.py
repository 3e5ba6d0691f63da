"""The messages of rejected acknowledgements, in ShareAcknowledge and in ShareFetch.

The embedded broker and a real Kafka return the same ones.
"""

import uuid
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.histories import Member, Player
from tests.broker.messages import base64_id
from tests.broker.steps import Produce

ACCEPT, RELEASE, RENEW = (1,), (2,), (4,)
EARLIEST = {"share.auto.offset.reset": "earliest"}
LOCK = 30.0


class Session:
    """The share session of one member, and its acknowledgements of partition 0."""

    def __init__(self, address, group, topic_id):
        self._member = Member(address, base64_id(uuid.uuid4()))
        self._group, self._topic_id = group, topic_id

    def close(self):
        self._member.cut()

    def fetch(self, *batches, max_records=500, max_wait=500, **fields):
        """Acknowledge batches, if there are any, and acquire records."""
        response = self._request(
            "share_fetch",
            batches,
            max_wait=timedelta(milliseconds=max_wait),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=max_records,
            batch_size=500,
            **fields,
        )
        return [
            (each.acknowledge_error_code, each.acknowledge_error_message)
            for topic in response.responses
            for each in topic.partitions
        ]

    def acknowledge(self, *batches, **fields):
        """Acknowledge batches of first offset, last offset and types."""
        response = self._request("share_acknowledge", batches, **fields)
        return [
            (each.error_code.value, each.error_message)
            for topic in response.responses
            for each in topic.partitions
        ]

    def _request(self, api, batches, **fields):
        named = [
            {"first_offset": first, "last_offset": last, "acknowledge_types": types}
            for first, last, types in batches
        ]
        partition = {"partition_index": 0, "acknowledgement_batches": named}
        response = self._member.request(
            api,
            2,
            group_id=self._group,
            topics=[{"topic_id": self._topic_id, "partitions": [partition]}],
            **fields,
        )
        assert not response.error_code
        self._member.epoch += 1
        return response


@pytest.fixture
def sessions(any_kafka):
    """Two members: the first one has acquired two batches of ten records each."""
    group = f"group-{uuid.uuid4().hex[:8]}"
    topic = any_kafka.admin.create_topic(1)
    any_kafka.admin.set_group_config(group, EARLIEST)
    address = any_kafka.bootstrap_servers.split(",")[0]
    player = Player(address, topic, group, LOCK)
    player.join()
    ann, bob = (Session(address, group, player.topic_id) for _ in range(2))
    for _ in range(2):
        player.play([Produce((10,))])
        ann.fetch()
    bob.fetch(max_records=0, max_wait=0)
    yield ann, bob
    for each in (ann, bob, player):
        each.close()


STATE = ErrorCode.invalid_record_state.value
REQUEST = ErrorCode.invalid_request.value
NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
BATCH_NOT_ACQUIRED = (
    "The batch cannot be acknowledged. The batch is not in the acquired state."
)
FIRST_PAST = (
    "Batch record not found. The first offset in request is past acquired records."
)
LAST_PAST = (
    "Batch record not found. The last offset in request is past acquired records."
)


@pytest.fixture(params=["acknowledge", "fetch"])
def send(request):
    """Return a function that acknowledges with one of the two APIs."""

    def send(session, *batches, **fields):
        if request.param == "acknowledge":
            return session.acknowledge(*batches, **fields)
        return session.fetch(*batches, max_records=0, max_wait=0, **fields)

    return send


@pytest.mark.newer_kafka
def test_acknowledgement_of_another_member_has_the_message_of_kafka(sessions, send):
    ann, bob = sessions

    assert [(STATE, "Member is not the owner of batch record")] == send(
        bob, (0, 9, ACCEPT)
    )
    ann.acknowledge((12, 12, ACCEPT))
    assert [(STATE, "Member is not the owner of offset")] == send(bob, (13, 13, ACCEPT))


@pytest.mark.newer_kafka
def test_second_acknowledgement_has_the_message_of_kafka(sessions, send):
    ann, _ = sessions
    ann.acknowledge((10, 19, ACCEPT))
    ann.acknowledge((2, 3, ACCEPT))

    assert [(STATE, BATCH_NOT_ACQUIRED)] == send(ann, (10, 19, ACCEPT))
    assert [(STATE, BATCH_NOT_ACQUIRED)] == send(ann, (11, 12, ACCEPT))
    assert [(STATE, NOT_ACQUIRED)] == send(ann, (2, 2, ACCEPT))
    assert [(STATE, NOT_ACQUIRED)] == send(ann, (5, 5, ACCEPT), (5, 6, ACCEPT))


@pytest.mark.newer_kafka
def test_acknowledgement_of_other_offsets_has_the_message_of_kafka(sessions, send):
    ann, _ = sessions

    assert [(REQUEST, FIRST_PAST)] == send(ann, (25, 26, ACCEPT))
    assert [(REQUEST, LAST_PAST)] == send(ann, (5, 26, ACCEPT))


@pytest.mark.newer_kafka
def test_malformed_acknowledgement_has_the_message_of_kafka(sessions, send):
    ann, _ = sessions

    assert [(REQUEST, None)] == send(ann, (3, 0, ACCEPT))
    assert [(0, None)] == send(ann, (0, 3, ACCEPT))
