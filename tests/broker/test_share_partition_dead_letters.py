"""Dead letters of a share partition (KIP-1191).

The expected values were measured on Kafka 4.4.0.
"""

import pytest
from kio.schema.errors import ErrorCode

from sharecons.testing.broker.share.deliveries import AcknowledgeError
from tests.broker.share_groups import (
    ACCEPT,
    ARCHIVED,
    ARCHIVING,
    GAP,
    REJECT,
    RELEASE,
    Group,
)


@pytest.mark.parametrize("way", ["release", "session", "lock"])
def test_record_at_delivery_limit_becomes_dead_letter(way):
    group = Group(4, delivery_limit=2, dead_letters=True)
    group.fetch()
    group.release()
    group.fetch(now=0.0)
    if way == "release":
        group.acknowledge((0, 3, RELEASE))
    elif way == "session":
        group.release()
    else:
        group.advance(now=30.0)

    assert [(0, 3, ARCHIVING, 2)] == group.written
    (pending,) = group.partition.take_due_dead_letters(30.0)
    assert (0, 3) == pending.run[:2]
    assert not pending.run.delivery.is_rejected


def test_records_without_content_are_archived_immediately():
    group = Group(4, 4, delivery_limit=2, dead_letters=True)
    group.fetch(aborted=[(4, 7)])
    group.acknowledge((0, 0, GAP))
    group.release()
    group.fetch()
    group.partition.log_start_moved(3)
    group.release()

    assert [(3, 3)] == [
        each.run[:2] for each in group.partition.take_due_dead_letters(0.0)
    ]


def test_archiving_record_blocks_start_offset():
    group = Group(4, dead_letters=True)
    group.fetch()
    group.acknowledge((0, 1, REJECT), (2, 2, ACCEPT))
    with pytest.raises(AcknowledgeError) as rejected:
        group.acknowledge((0, 0, ACCEPT))
    group.release()

    assert rejected.value.code is ErrorCode.invalid_record_state
    assert [(3, 3, 2)] == group.fetch()
    assert 0 == group.partition.start_offset
    group.partition.archive(group.partition.take_due_dead_letters(0.0))
    assert 3 == group.partition.start_offset


def test_parts_of_a_batch_have_separate_reasons():
    group = Group(5, delivery_limit=2, dead_letters=True)
    group.fetch()
    group.acknowledge((0, 4, RELEASE))
    group.fetch()
    group.acknowledge((0, 4, REJECT, RELEASE, RELEASE, ACCEPT, REJECT))

    pending = group.partition.take_due_dead_letters(0.0)
    assert [(0, 0, True), (1, 2, False), (4, 4, True)] == [
        (*each.run[:2], each.run.delivery.is_rejected) for each in pending
    ]
    group.partition.archive(pending)
    assert 5 == group.partition.start_offset


def test_new_leader_resumes_archiving_records():
    group = Group(4, 4, delivery_limit=2, dead_letters=True)
    group.fetch(max_records=4)
    group.release()
    group.fetch(max_records=4)
    group.release()
    group.fetch(max_records=4)
    group.acknowledge((4, 7, REJECT))
    group.move_leader()
    group.partition.resume_dead_letters(group.settings)

    pending = group.partition.take_due_dead_letters(0.0)
    assert [(0, 3, False), (4, 7, True)] == [
        (*each.run[:2], each.run.delivery.is_rejected) for each in pending
    ]
    assert group.partition.archive(pending)
    assert [(0, 3, ARCHIVED, 2), (4, 7, ARCHIVED, 1)] == group.written


def test_dead_letter_is_retried_for_half_a_minute():
    group = Group(4, dead_letters=True, lock_duration=60.0)
    group.fetch()
    group.acknowledge((0, 3, REJECT))
    (pending,) = group.partition.take_due_dead_letters(10.0)
    due = []
    while (pending := pending.next_try(pending.due_at if due else 10.0)) is not None:
        due.append(pending.due_at)
        group.partition.requeue(pending)
        assert group.partition.next_deadline() == pending.due_at
        assert [] == group.partition.take_due_dead_letters(pending.due_at - 0.1)
        (pending,) = group.partition.take_due_dead_letters(pending.due_at)

    assert [12.0, 16.0, 24.0, 40.0] == due


def test_missed_tries_count():
    group = Group(4, dead_letters=True)
    group.fetch()
    group.acknowledge((0, 3, REJECT))
    (pending,) = group.partition.take_due_dead_letters(10.0)
    waiting = pending.next_try(10.0)

    assert 24.0 == waiting.next_try(20.0).due_at
    assert waiting.next_try(40.0) is None
