"""What a leader's machine fetches, and how long a fetch waits."""

import pytest

from sharecons.protocol.fetch.events import (
    Acquired,
    EndpointsLearned,
    UnexpectedResponse,
)
from sharecons.protocol.fetch.waits import SHORT_WAIT
from sharecons.protocol.messages import Endpoint, ShareFetch
from sharecons.record import ACCEPT, RELEASE
from tests.protocol.making import (
    EVER,
    P0,
    P1,
    P2,
    SETTINGS,
    TOPIC,
    batch,
    each,
    fetched,
    part,
)
from tests.protocol.talk import Talk

# Opening, fetching, and what is fetched.


def test_the_first_request_opens_the_session_with_every_partition():
    request = Talk(P0, P1).fetch()

    assert ("billing", "AAAAAAAAAAAAAAAAAAAAAA") == (
        request.group_id,
        request.member_id,
    )
    assert 0 == request.share_session_epoch
    assert frozenset({P0, P1}) == request.added
    assert frozenset() == request.forgotten
    assert {} == request.acknowledgements


def test_later_fetches_are_numbered_and_list_nothing_anew():
    talk = Talk()
    talk.answer(talk.fetch(), fetched())

    request = talk.fetch()

    assert (1, frozenset()) == (request.share_session_epoch, request.added)


def test_nothing_is_asked_while_nothing_is_wanted():
    talk = Talk()
    talk.leader.set_partitions(frozenset())

    assert talk.next() is None
    assert EVER == talk.leader.next_deadline(now=0.0)


def test_nothing_is_fetched_before_the_application_asks():
    talk = Talk()
    talk.pace.waiting = 0

    assert talk.next() is None
    assert EVER == talk.leader.next_deadline(now=0.0)


def test_a_fetch_asks_for_the_leaders_share_of_the_allowance():
    talk = Talk()
    talk.pace.allowance = 100
    talk.leader.leaders = 3

    request = talk.fetch()

    assert (34, True) == (request.max_records, request.record_limit)


def test_each_of_many_partitions_may_bring_all_that_a_fetch_asks_for():
    talk = Talk(P0, P1, P2, max_bytes=1000)
    talk.pace.allowance = 10
    first = talk.fetch()

    talk.answer(first, fetched(part(P0, (0, 0), records=batch(1, 70))))
    talk.leases()
    talk.pace.waiting = 1

    assert [1000, 3 * 10 * 70] == [first.max_bytes, talk.fetch().max_bytes]


def test_whole_batches_come_at_full_speed_only():
    talk = Talk()
    talk.pace.allowance = 500

    assert not talk.fetch().record_limit


def test_the_limit_is_exact_at_full_speed_too_if_the_user_says_so():
    talk = Talk(record_limit=True)
    talk.pace.allowance = 500

    assert talk.fetch().record_limit


def test_acquired_records_make_a_lease_that_counts_from_the_request():
    talk = Talk()
    talk.now = 100.0
    request = talk.fetch()
    talk.now = 100.4

    talk.answer(request, fetched(part(P0, (5, 9)), lock_timeout=20.0))
    (lease,) = talk.leases()

    assert (TOPIC, P0, ((5, 9, 1),)) == (
        lease.topic,
        lease.share_partition,
        lease.acquired,
    )
    assert 120.0 == lease.deadline
    assert (lease,) == talk.acknowledgements.held


def test_an_answer_without_a_locks_length_leaves_it_as_it_was():
    talk = Talk()
    talk.answer(talk.fetch(), fetched(lock_timeout=20.0))
    talk.now = 50.0

    talk.answer(talk.fetch(), fetched(part(P0, (0, 0)), lock_timeout=0.0))

    assert 70.0 == talk.leases()[0].deadline


def test_a_topic_without_a_name_yet_is_served_all_the_same():
    talk = Talk()
    talk.leader.topics = {}

    assert ["?"] == [lease.topic for lease in talk.open(part(P0, (0, 0)))]


def test_what_is_acquired_is_counted_as_buffered():
    talk = Talk()

    talk.answer(talk.fetch(), fetched(part(P0, (0, 3)), part(P0, (9, 9))))

    assert 4 == talk.pace.buffered


@pytest.mark.parametrize("case", ["unasked", "twice"])
def test_a_partition_that_should_not_be_in_the_answer_is_left_alone(case: str):
    talk = Talk()
    stranger = part(P1 if case == "unasked" else P0, (7, 9))

    talk.answer(talk.fetch(), fetched(part(P0, (0, 3)), stranger))

    assert 1 == len(talk.happened(UnexpectedResponse))
    assert 1 == len(talk.happened(Acquired))
    assert 4 == talk.pace.buffered


def test_records_of_a_partition_that_is_no_longer_wanted_are_delivered():
    talk = Talk(P0, P1)
    request = talk.fetch()

    talk.leader.set_partitions(frozenset({P1}))
    talk.answer(request, fetched(part(P0, (0, 3))))

    assert [P0] == [lease.share_partition for lease in talk.leases()]


def test_a_partition_that_comes_and_one_that_goes_are_told_in_one_fetch():
    talk = Talk(P0, P1)
    talk.answer(talk.fetch(), fetched())

    talk.leader.set_partitions(frozenset({P1, P2}))
    request = talk.fetch()
    talk.answer(request, fetched())
    after = talk.fetch()

    assert (frozenset({P2}), frozenset({P0})) == (request.added, request.forgotten)
    assert (frozenset(), frozenset()) == (after.added, after.forgotten)


def test_acknowledgements_of_a_partition_that_goes_ride_with_its_forgetting():
    talk = Talk(P0, P1)
    (lease,) = talk.open(part(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    talk.leader.set_partitions(frozenset({P1}))
    talk.pace.waiting = 1

    request = talk.fetch()
    talk.answer(request, fetched(part(P0)))

    assert [P0] == list(request.acknowledgements)
    assert frozenset({P0}) == request.forgotten
    assert [None] == talk.errors
    assert frozenset() == talk.fetch().forgotten


def test_a_broker_told_endpoints_passes_them_on():
    talk = Talk()
    endpoints = {7: Endpoint("broker-7", 9092)}

    talk.answer(talk.fetch(), fetched(endpoints=endpoints))

    assert [EndpointsLearned(endpoints)] == talk.happened(EndpointsLearned)


# How long a fetch waits.


def test_a_fetch_waits_long_when_nothing_is_in_the_applications_hands():
    assert SETTINGS.max_wait == Talk().fetch().max_wait


def test_a_fetch_waits_for_moments_while_records_are_in_the_applications_hands():
    talk = Talk()
    talk.open(part(P0, (0, 3)))
    talk.pace.waiting = 1

    assert SHORT_WAIT == talk.fetch().max_wait


def test_short_waits_grow_while_nothing_comes_and_begin_anew_when_something_does():
    talk = Talk()
    talk.open(part(P0, (0, 3)))
    talk.pace.waiting = 1
    waits = []
    for _ in range(5):
        request = talk.fetch()
        waits.append(request.max_wait)
        talk.now += request.max_wait
        talk.answer(request, fetched())
    talk.answer(talk.fetch(), fetched(part(P0, (5, 6))))
    talk.leases()

    assert [0.01, 0.02, 0.04, 0.08, 0.1] == waits
    assert SHORT_WAIT == talk.fetch().max_wait


def test_a_fetch_ahead_of_the_work_waits_for_moments_only():
    talk = Talk()
    talk.pace.waiting = 0
    talk.pace.asked(now=0.0)

    assert SHORT_WAIT == talk.fetch().max_wait


def test_a_fetch_that_found_the_end_is_followed_when_the_application_asks():
    talk = Talk()
    talk.pace.allowance = 100
    request = talk.fetch()
    talk.answer(request, fetched(part(P0, (0, 23))))
    assert 100 == request.max_records

    assert talk.next() is None, "though it waits: it was not handed these yet"
    talk.leases()
    talk.pace.waiting = 0
    assert talk.next() is None
    talk.pace.waiting = 1
    assert isinstance(talk.next(), ShareFetch)


def test_a_fetch_that_found_more_than_it_could_bring_is_followed_at_once():
    talk = Talk()
    talk.open(part(P0, (0, 9)))
    talk.pace.asked(talk.now)  # in no time: a fast application
    talk.pace.allowance = 100
    talk.answer(talk.fetch(), fetched(part(P0, (10, 34))))

    assert isinstance(talk.next(), ShareFetch)


def test_a_fetch_that_releases_does_not_wait_for_other_records():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge_open(0, 3, ACCEPT)
    lease.acknowledge(3, RELEASE)
    talk.pace.waiting = 1
    request = talk.fetch()
    talk.answer(request, fetched(part(P0)))

    assert 0.0 == request.max_wait
    assert {3: RELEASE} == {
        o: k for o, k in each(request.acknowledgements[P0]).items() if k != ACCEPT
    }
    assert SETTINGS.max_wait == talk.fetch().max_wait


def test_a_wait_that_the_user_wants_shorter_is_shorter():
    talk = Talk(max_wait=0.005)
    talk.open(part(P0, (0, 3)))
    talk.pace.waiting = 1

    assert 0.005 == talk.fetch().max_wait


def test_no_wait_is_so_long_that_what_comes_has_lost_its_lock():
    talk = Talk(max_wait=3600.0)
    first = talk.fetch()
    talk.answer(first, fetched(lock_timeout=10.0))

    assert 30.0 / 4 == first.max_wait
    assert 10.0 / 4 == talk.fetch().max_wait
