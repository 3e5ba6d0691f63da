"""Partitions that are refused: paused, fetched again, and told of."""

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import FetchRecovered, PartitionError
from sharecons.protocol.fetch.leader import Leader
from sharecons.protocol.fetch.pauses import FetchablePartitions, FetchPauses
from sharecons.protocol.messages import ShareFetch, SharePartition
from sharecons.record import ACCEPT
from tests.protocol.making import (
    EVER,
    P0,
    P1,
    P2,
    SETTINGS,
    acknowledged,
    fetched,
    part,
)
from tests.protocol.talk import Talk

FORBIDDEN = Code.TOPIC_AUTHORIZATION_FAILED
OTHER = SharePartition(bytes([8] * 16), 0)
REPORTED = [
    FORBIDDEN,
    Code.GROUP_AUTHORIZATION_FAILED,
    Code.CORRUPT_MESSAGE,
    Code.INVALID_REQUEST,
]


def refused(*partitions, code=FORBIDDEN):
    return [part(each, error=code) for each in partitions]


# The pauses.


def test_partitions_of_a_topic_that_fail_together_share_one_pause():
    pauses = FetchPauses()
    for each in (P0, P1, P2):
        pauses.failed(each, FORBIDDEN, 1.0)

    assert {1.05} == {pauses.until(each) for each in (P0, P1, P2)}
    assert -EVER == pauses.until(OTHER)


def test_each_corrupt_partition_has_its_own_pause():
    pauses = FetchPauses()
    pauses.failed(P0, Code.CORRUPT_MESSAGE, 1.0)
    pauses.failed(P1, Code.CORRUPT_MESSAGE, 2.0)

    assert (1.05, 2.05) == (pauses.until(P0), pauses.until(P1))


@pytest.mark.parametrize("code", REPORTED)
def test_pauses_of_an_error_that_stays_grow_to_a_limit(code):
    pauses = FetchPauses()
    now, lengths = 0.0, []
    for _ in range(8):
        pauses.failed(P0, code, now)
        lengths.append(pauses.until(P0) - now)
        now = pauses.until(P0)

    assert pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1, 1, 1]) == lengths


def test_error_that_is_not_reported_makes_no_pause():
    pauses = FetchPauses()
    pauses.failed(P0, Code.NOT_LEADER_OR_FOLLOWER, 1.0)

    assert {} == pauses.codes


def test_one_partition_that_is_fetched_ends_the_pause_of_its_topic():
    """So that the other leaders need not wait either."""
    pauses = FetchPauses()
    pauses.failed(P0, FORBIDDEN, 1.0)
    pauses.failed(P1, FORBIDDEN, 1.0)

    assert [P0] == pauses.take_recovered({P0}, [])
    assert -EVER == pauses.until(P1)
    assert {P1: FORBIDDEN} == pauses.codes


def test_partition_that_was_not_asked_has_not_recovered():
    pauses = FetchPauses()
    pauses.failed(P0, FORBIDDEN, 1.0)

    assert [] == pauses.take_recovered({P1}, [part(P1, (0, 3))])


def test_corrupt_partition_recovers_with_a_record():
    pauses = FetchPauses()
    pauses.failed(P0, Code.CORRUPT_MESSAGE, 1.0)

    assert [] == pauses.take_recovered({P0}, [part(P0)])
    assert [P0] == pauses.take_recovered({P0}, [part(P0, (0, 3))])


def test_partition_that_is_no_longer_assigned_is_forgotten():
    pauses = FetchPauses()
    pauses.failed(P0, FORBIDDEN, 1.0)
    pauses.failed(OTHER, FORBIDDEN, 1.0)
    pauses.keep_only({P0})

    assert {P0: FORBIDDEN} == pauses.codes
    assert -EVER == pauses.until(OTHER)


def test_fetchable_partitions_are_one_object_while_nothing_changes():
    """The session compares by identity (`ShareSession.changes`)."""
    pauses = FetchPauses()
    fetchable = FetchablePartitions(pauses)
    wanted = frozenset({P0, P1, OTHER})
    assert wanted is fetchable.at(wanted, 0.0)

    pauses.failed(OTHER, FORBIDDEN, 1.0)
    during = fetchable.at(wanted, 1.0)
    pauses.failed(OTHER, FORBIDDEN, 1.01)

    assert {P0, P1} == during
    assert during is fetchable.at(wanted, 1.04)
    assert 1.05 == fetchable.next_end(wanted, 1.04)
    assert wanted is fetchable.at(wanted, 1.05)
    assert EVER == fetchable.next_end(wanted, 1.05)


# The leader.


@pytest.mark.parametrize("code", REPORTED)
def test_leader_goes_on_with_the_other_partitions(code):
    talk = Talk(P0, OTHER)
    talk.answer(talk.fetch(), fetched(*refused(P0, code=code)))
    during = talk.fetch()
    talk.answer(during, fetched(part(OTHER, (0, 3))))
    talk.leases()
    talk.now = 0.06
    after = talk.fetch()

    assert {P0} == during.forgotten
    assert {P0} == after.added
    assert not after.forgotten


@pytest.mark.parametrize("code", REPORTED)
def test_leader_without_others_waits_until_the_pause_ends(code):
    talk = Talk(P0, P1)
    talk.answer(talk.fetch(), fetched(*refused(P0, P1, code=code)))

    assert talk.next() is None
    assert 0.03 < talk.leader.next_deadline(0.0) <= 0.06
    talk.now = talk.leader.next_deadline(0.0)
    again = talk.fetch()
    assert not again.added
    assert not again.forgotten


def test_refused_partition_is_asked_about_once_a_second_at_the_most():
    talk = Talk(P0, OTHER)
    asked = 0
    for _ in range(2_000):
        due = talk.leader.next_deadline(talk.now)
        talk.now = max(due, talk.now)
        request = talk.fetch()
        now_refused = P0 not in request.forgotten and (
            P0 in request.added or P0 in talk.leader._session.partitions
        )
        asked += now_refused
        talk.now += 0.0 if now_refused else request.max_wait
        talk.answer(request, fetched(*refused(P0) if now_refused else ()))
        if talk.now > 10:
            break

    assert 8 <= asked <= 17


def test_recovery_is_told_once():
    talk = Talk(P0, P1)
    talk.answer(talk.fetch(), fetched(*refused(P0, P1)))
    assert [P0, P1] == [each.share_partition for each in talk.happened(PartitionError)]
    talk.now = 1.0

    talk.answer(talk.fetch(), fetched(part(P0, (0, 3))))
    recovered = talk.happened(FetchRecovered)
    talk.leases()
    talk.answer(talk.fetch(), fetched(part(P0, (4, 7))))

    assert {P0, P1} == {each.share_partition for each in recovered}
    assert [] == talk.happened(FetchRecovered)


def test_partition_is_still_refused_by_its_next_leader():
    """What is known of it does not belong to the leader that it had."""
    pauses = FetchPauses()
    talk = Talk(P0)
    talk.leader = Leader(2, SETTINGS, talk.pace, talk.acknowledgements, pauses)
    talk.leader.set_partitions(frozenset({P0}))
    pauses.failed(P0, FORBIDDEN, 0.0)

    assert talk.next() is None
    talk.now = talk.leader.next_deadline(0.0)
    talk.answer(talk.fetch(), fetched(part(P0, (0, 3))))
    assert [FetchRecovered(P0)] == talk.happened(FetchRecovered)


def test_acknowledgements_of_a_refused_partition_are_sent():
    talk = Talk(P0, OTHER)
    (lease,) = talk.open(part(P0, (0, 3)))
    talk.pace.waiting = 1
    talk.answer(talk.fetch(), fetched(*refused(P0)))
    lease.acknowledge(0, ACCEPT)
    talk.leader.flush_acks()
    request = talk.next()

    assert P0 in request.acknowledgements
    if isinstance(request, ShareFetch):
        assert P0 in request.forgotten
        talk.answer(request, fetched(part(P0)))
    else:
        talk.answer(request, acknowledged(part(P0)))
    assert [None] == talk.errors


def test_new_leader_of_a_partition_that_moves_meanwhile_is_not_stormed():
    """Its errors of another kind pause the leader, as ever."""
    talk = Talk(P0)
    talk.answer(talk.fetch(), fetched(*refused(P0)))
    talk.now = talk.leader.next_deadline(talk.now)
    talk.answer(talk.fetch(), fetched(part(P0, error=Code.KAFKA_STORAGE_ERROR)))

    assert talk.next() is None
    assert talk.leader.next_deadline(talk.now) > talk.now


def test_closing_does_not_wait_for_a_pause():
    talk = Talk(P0)
    talk.answer(talk.fetch(), fetched(*refused(P0)))
    talk.leader.close()

    assert -1 == talk.acknowledge().share_session_epoch
