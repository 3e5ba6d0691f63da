import pytest

from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    UnsupportedVersionError,
)
from sharecons.protocol import reactions
from sharecons.protocol.codes import Code
from sharecons.protocol.gathering import ACK_DELAY, RIDE_AFTER
from sharecons.protocol.happenings import (
    Acquired,
    EndpointsTold,
    LeaderMoved,
    LocksLost,
    MetadataStale,
    Refused,
    Strange,
    Troubled,
)
from sharecons.protocol.leases import Lease
from sharecons.protocol.reactions import Reaction
from sharecons.protocol.results import Ticket
from sharecons.protocol.session import CLOSING
from sharecons.protocol.values import (
    Endpoint,
    PartitionLeader,
    ShareAcknowledge,
    ShareFetch,
)
from sharecons.protocol.waits import SHORT_WAIT
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW
from tests.protocol.making import (
    EVER,
    P0,
    P1,
    P2,
    SETTINGS,
    TOPIC,
    acknowledged,
    each,
    fetched,
    part,
)
from tests.protocol.talk import Talk

MOVED = (Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH)
OUTSIDE = [Code.UNKNOWN_SERVER_ERROR, Code.SHARE_SESSION_LIMIT_REACHED, 9_999]


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
    talk.leader.want(frozenset())

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

    talk.answer(first, fetched(part(P0, (0, 0), records=b"x" * 60)))
    talk.leases()
    talk.pace.waiting = 1

    assert [1000, 3 * 10 * 60] == [first.max_bytes, talk.fetch().max_bytes]


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

    assert 1 == len(talk.happened(Strange))
    assert 1 == len(talk.happened(Acquired))
    assert 4 == talk.pace.buffered


def test_records_of_a_partition_that_is_no_longer_wanted_are_delivered():
    talk = Talk(P0, P1)
    request = talk.fetch()

    talk.leader.want(frozenset({P1}))
    talk.answer(request, fetched(part(P0, (0, 3))))

    assert [P0] == [lease.share_partition for lease in talk.leases()]


def test_a_partition_that_comes_and_one_that_goes_are_told_in_one_fetch():
    talk = Talk(P0, P1)
    talk.answer(talk.fetch(), fetched())

    talk.leader.want(frozenset({P1, P2}))
    request = talk.fetch()
    talk.answer(request, fetched())
    after = talk.fetch()

    assert (frozenset({P2}), frozenset({P0})) == (request.added, request.forgotten)
    assert (frozenset(), frozenset()) == (after.added, after.forgotten)


def test_acknowledgements_of_a_partition_that_goes_ride_with_its_forgetting():
    talk = Talk(P0, P1)
    (lease,) = talk.open(part(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    talk.leader.want(frozenset({P1}))
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

    assert [EndpointsTold(endpoints)] == talk.happened(EndpointsTold)


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


# Acknowledgements.


def test_acknowledgements_ride_on_the_next_fetch():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge_open(0, 4, ACCEPT)
    talk.pace.waiting = 1

    request = talk.fetch()

    assert dict.fromkeys(range(4), ACCEPT) == each(request.acknowledgements[P0])
    assert 1 == request.share_session_epoch


def test_fetch_and_acknowledgement_of_a_partition_fail_apart():
    talk = Talk(P0, P1)
    leases = talk.open(part(P0, (0, 0)), part(P1, (0, 0)))
    for lease in leases:
        lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1

    talk.answer(
        talk.fetch(),
        fetched(
            part(P0, (1, 2), acknowledge_error=Code.FENCED_STATE_EPOCH),
            part(P1, error=Code.KAFKA_STORAGE_ERROR),
        ),
    )

    assert {"FENCED_STATE_EPOCH", None} == set(talk.errors)
    assert [P0] == [h.lease.share_partition for h in talk.happened(Acquired)]


def test_acknowledgements_leave_by_themselves_after_a_moment():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    waited = talk.next()
    due = talk.leader.next_deadline(talk.now)
    talk.now = due
    request = talk.acknowledge()

    assert (None, ACK_DELAY) == (waited, due)
    assert {0: ACCEPT} == each(request.acknowledgements[P0])
    assert (1, False) == (request.share_session_epoch, request.renewing)


def trickle(talk: Talk, offset: int) -> tuple[ShareFetch, list[Lease]]:
    """The application asks, and its fetch brings one record, far from all it may."""
    talk.pace.waiting = 1
    request = talk.fetch()
    talk.answer(request, fetched(part(P0, (offset, offset))))
    talk.pace.waiting = 0
    return request, talk.leases()


def trickling() -> tuple[Talk, Lease]:
    """A leader that may ask for many, and found one."""
    talk = Talk()
    talk.pace.allowance = 500
    _, (lease,) = trickle(talk, 0)
    return talk, lease


def test_acknowledgements_of_single_records_do_not_ride_with_each_fetch():
    talk, lease = trickling()
    lease.acknowledge(0, ACCEPT)

    at_once, (second,) = trickle(talk, 1)
    second.acknowledge(1, ACCEPT)
    talk.now += RIDE_AFTER
    later, _ = trickle(talk, 2)

    assert {} == at_once.acknowledgements
    assert ACK_DELAY == pytest.approx(at_once.max_wait)  # no longer in their way
    assert {0: ACCEPT, 1: ACCEPT} == each(later.acknowledgements[P0])


def test_a_release_rides_with_the_next_fetch():
    talk, lease = trickling()
    lease.acknowledge(0, RELEASE)

    request, _ = trickle(talk, 1)

    assert {0: RELEASE} == each(request.acknowledgements[P0])


def test_what_somebody_waits_for_rides_with_the_next_fetch():
    talk, lease = trickling()
    lease.acknowledge(0, ACCEPT)
    talk.leader.hasten()

    request, _ = trickle(talk, 1)

    assert {0: ACCEPT} == each(request.acknowledgements[P0])


def test_where_more_lies_ready_acknowledgements_ride_with_each_fetch():
    talk, lease = trickling()
    talk.open_more(part(P0, (1, 500)))
    lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1

    assert {0: ACCEPT} == each(talk.fetch().acknowledgements[P0])


def test_marks_made_meanwhile_travel_along():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.next()

    lease.acknowledge(1, REJECT)
    talk.now = ACK_DELAY

    assert {0: ACCEPT, 1: REJECT} == each(talk.acknowledge().acknowledgements[P0])


def test_gaps_leave_by_themselves_too():
    talk = Talk()
    talk.answer(talk.fetch(), fetched(part(P0, (0, 3))))
    (happening,) = talk.happened(Acquired)
    talk.pace.waiting = 0

    happening.lease.unpacked([], gaps=[(0, 3)])
    talk.pace.handed_out(4, talk.now)

    assert dict.fromkeys(range(4), 0) == each(talk.flush().acknowledgements[P0])


def test_whoever_waits_for_acknowledgements_waits_no_longer_than_needed():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    ticket = Ticket()
    talk.acknowledgements.freeze(ticket)

    talk.leader.hasten()
    talk.answer(talk.acknowledge(), acknowledged(part(P0)))

    assert ticket.done


def test_fetches_and_acknowledgements_share_one_sequence():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    request = talk.flush()
    talk.answer(request, acknowledged(part(P0)))
    talk.pace.waiting = 1

    assert (1, 2) == (request.share_session_epoch, talk.fetch().share_session_epoch)


def test_acknowledgements_go_out_although_nothing_is_wanted_any_more():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 0)))
    talk.leader.want(frozenset())
    lease.acknowledge(0, ACCEPT)

    assert {0: ACCEPT} == each(talk.flush().acknowledgements[P0])


def test_renewals_never_ride_on_a_fetch():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, ACCEPT)
    talk.pace.waiting = 1

    request = talk.acknowledge()

    assert request.renewing
    assert {0: RENEW, 1: ACCEPT} == each(request.acknowledgements[P0])


def test_a_renewal_moves_the_locks_end():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    talk.now = 20.0
    lease.acknowledge(0, RENEW)

    request = talk.acknowledge()
    talk.now = 20.1
    talk.answer(request, acknowledged(part(P0), lock_timeout=40.0))

    assert (60.1, 30.0) == (lease.deadline_of(0), lease.deadline_of(1))


def test_a_broker_that_knows_no_renewal_is_not_asked_for_one():
    talk = Talk()
    talk.answer(talk.fetch(), fetched(part(P0, (0, 0)), renewable=False))
    (lease,) = talk.leases()

    with pytest.raises(UnsupportedVersionError):
        lease.acknowledge(0, RENEW)


def test_a_refused_acknowledgement_is_retried_after_a_pause():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    code = Code.REQUEST_TIMED_OUT

    talk.answer(talk.flush(), acknowledged(part(P0, acknowledge_error=code)))
    due = talk.leader.next_deadline(talk.now)

    assert talk.now + 0.03 < due < talk.now + 0.07


def test_records_past_their_lock_leave_the_hands_of_the_leader():
    talk = Talk()
    talk.open(part(P0, (0, 3)))
    talk.pace.waiting = 1
    talk.now = 30.0

    request = talk.fetch()

    assert SETTINGS.max_wait == request.max_wait
    assert () == talk.acknowledgements.held


# Errors of the whole request.


@pytest.mark.parametrize("code", [Code.INVALID_SHARE_SESSION_EPOCH])
def test_a_wrong_epoch_opens_anew_and_loses_nothing(code: Code):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1

    talk.answer(talk.fetch(), fetched(error=code))
    talk.now = talk.leader.next_deadline(talk.now)
    opening = talk.fetch()
    talk.answer(opening, fetched())
    after = talk.fetch()

    assert (0, frozenset({P0}), {}) == (
        opening.share_session_epoch,
        opening.added,
        opening.acknowledgements,
    )
    assert {0: ACCEPT} == each(after.acknowledgements[P0])
    assert [] == talk.errors + talk.happened(LocksLost)
    assert not lease.term.over


def test_a_wrong_epoch_of_an_acknowledgement_opens_anew_to_say_it_again():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    talk.answer(talk.flush(), acknowledged(error=Code.INVALID_SHARE_SESSION_EPOCH))
    talk.now = talk.leader.next_deadline(talk.now)
    opening = talk.fetch()
    talk.answer(opening, fetched())
    again = talk.acknowledge()  # it has waited long enough
    talk.answer(again, acknowledged(part(P0)))

    assert (0, 0.0, 0) == (
        opening.share_session_epoch,
        opening.max_wait,
        opening.max_bytes,
    )
    assert {0: ACCEPT} == each(again.acknowledgements[P0])
    assert [None] == talk.errors


def test_a_forgotten_session_takes_its_locks_with_it():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1

    talk.answer(talk.fetch(), fetched(error=Code.SHARE_SESSION_NOT_FOUND))
    talk.now = talk.leader.next_deadline(talk.now)

    assert lease.term.over
    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors
    assert [(lease,)] == [h.leases for h in talk.happened(LocksLost)]
    assert 0 == talk.fetch().share_session_epoch


@pytest.mark.parametrize("code", OUTSIDE)
def test_any_other_error_opens_anew_and_fails_what_may_have_been_applied(code: int):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1

    talk.answer(talk.fetch(), fetched(error=code, message="so it says"))
    talk.now = talk.leader.next_deadline(talk.now)
    opening = talk.fetch()

    assert 1 == len(talk.errors)
    assert None not in talk.errors
    assert (0, {}) == (opening.share_session_epoch, opening.acknowledgements)
    assert not lease.term.over


@pytest.mark.parametrize("code", [*OUTSIDE, 122, 123])
def test_an_error_that_stays_is_met_with_growing_pauses(code: int):
    talk = Talk()
    pauses = []
    for _ in range(8):
        talk.answer(talk.fetch(), fetched(error=code))
        due = talk.leader.next_deadline(talk.now)
        pauses.append(due - talk.now)
        talk.now = due

    assert sorted(pauses) == pytest.approx(pauses)
    assert 0.8 <= pauses[-1] <= 1.2


@pytest.mark.parametrize(
    "code", [c for c, r in reactions.FETCH.items() if r is Reaction.REFUSE]
)
def test_a_refusal_ends_it_and_says_why(code: int):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    talk.answer(talk.flush(), acknowledged(error=code, message="so it says"))

    (refused,) = talk.happened(Refused)
    assert f"{Code(code).name} (so it says)" in str(refused.error)
    assert talk.leader.finished
    assert talk.next() is None
    assert EVER == talk.leader.next_deadline(talk.now)
    assert [Code(code).name] == talk.errors


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (Code.UNSUPPORTED_VERSION, UnsupportedVersionError),
        (Code.INVALID_REQUEST, BrokerError),
    ],
)
def test_a_refusal_is_an_error_of_its_kind(code: Code, kind: type):
    talk = Talk()

    talk.answer(talk.fetch(), fetched(error=code))

    assert [kind] == [type(h.error) for h in talk.happened(Refused)]


def test_a_throttled_leader_is_left_alone_as_long_as_it_says():
    talk = Talk()

    talk.answer(talk.fetch(), fetched(throttle=3.0))

    assert talk.next() is None
    assert 3.0 == talk.leader.next_deadline(talk.now)


# Errors of partitions.


@pytest.mark.parametrize("code", reactions.FETCH_PARTITION)
def test_each_code_of_a_partition_has_its_happening(code: int):
    talk = Talk()
    leader = PartitionLeader(2, 5)

    talk.answer(talk.fetch(), fetched(part(P0, error=code, leader=leader)))

    expected = {
        Reaction.PROCEED: [],
        Reaction.MOVE: [LeaderMoved(P0, leader)],
        Reaction.DESCRIBE: [MetadataStale(Code(code).name)],
        Reaction.REPORT: [Troubled(P0, code, None)],
    }
    assert expected[reactions.FETCH_PARTITION[code]] == talk.leader.happened


@pytest.mark.parametrize(
    "code",
    [Code.KAFKA_STORAGE_ERROR, Code.OFFSET_NOT_AVAILABLE, Code.UNKNOWN_SERVER_ERROR],
)
def test_a_passing_error_is_silent_and_asked_about_after_a_pause(code: Code):
    talk = Talk()

    talk.answer(talk.fetch(), fetched(part(P0, error=code)))

    assert [] == talk.leader.happened
    assert talk.next() is None
    assert talk.leader.next_deadline(talk.now) < 0.07


def test_an_error_beside_records_pauses_nobody():
    talk = Talk(P0, P1)

    talk.answer(
        talk.fetch(),
        fetched(part(P0, error=Code.TOPIC_AUTHORIZATION_FAILED), part(P1, (0, 3))),
    )
    leases = talk.leases()

    assert [P1] == [lease.share_partition for lease in leases]
    assert 1 == len(talk.happened(Troubled))
    assert talk.fetch()


def test_an_error_that_passed_is_forgotten():
    talk = Talk()
    for _ in range(6):
        error = part(P0, error=Code.KAFKA_STORAGE_ERROR)
        talk.answer(talk.fetch(), fetched(error))
        talk.now = talk.leader.next_deadline(talk.now)

    talk.answer(talk.fetch(), fetched())
    talk.answer(talk.fetch(), fetched(part(P0, error=Code.KAFKA_STORAGE_ERROR)))

    assert talk.leader.next_deadline(talk.now) - talk.now < 0.07


@pytest.mark.parametrize("code", MOVED)
def test_an_acknowledgements_answer_may_name_a_new_leader_too(code: Code):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    leader = PartitionLeader(0, 0)

    talk.answer(
        talk.flush(), acknowledged(part(P0, acknowledge_error=code, leader=leader))
    )

    assert [LeaderMoved(P0, leader)] == talk.leader.happened
    assert [code.name] == talk.errors


@pytest.mark.parametrize("code", MOVED)
def test_a_move_that_fails_fetch_and_acknowledgement_is_told_once(code: Code):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1

    talk.answer(talk.fetch(), fetched(part(P0, error=code, acknowledge_error=code)))

    assert 1 == len(talk.happened(LeaderMoved))


# Lost connections.


def test_a_lost_connection_loses_the_session_its_locks_and_what_was_under_way():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    talk.lose(talk.flush())
    talk.pace.waiting = 1
    blocked = talk.next()
    talk.now = talk.leader.next_deadline(talk.now)
    opening = talk.fetch()

    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors
    assert [(lease,)] == [h.leases for h in talk.happened(LocksLost)]
    assert 1 == len(talk.happened(MetadataStale))
    assert blocked is None
    assert (0, frozenset({P0}), {}) == (
        opening.share_session_epoch,
        opening.added,
        opening.acknowledgements,
    )


def test_a_lost_connection_with_nothing_held_loses_no_locks():
    talk = Talk()

    talk.lose(talk.fetch())

    assert [] == talk.happened(LocksLost)


def test_a_broker_that_is_down_is_asked_with_growing_pauses():
    talk = Talk()
    pauses = []
    for _ in range(8):
        talk.lose(talk.fetch())
        due = talk.leader.next_deadline(talk.now)
        pauses.append(due - talk.now)
        talk.now = due

    assert 0.8 <= pauses[-1] <= 1.2


def test_a_broker_too_old_for_the_request_refuses():
    talk = Talk()
    old = UnsupportedVersionError("too old")

    talk.leader.failed(talk.fetch(), old, talk.now)

    assert [Refused(old)] == talk.happened(Refused)
    assert talk.leader.finished


def test_what_is_said_after_the_connection_was_lost_fails():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    talk.pace.waiting = 1
    talk.lose(talk.fetch())

    lease.acknowledge(0, ACCEPT)

    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors


# Moving away.


def test_a_leader_with_nothing_to_fetch_and_nothing_held_has_moved_away():
    talk = Talk()
    talk.open()

    talk.leader.want(frozenset())

    assert talk.leader.moved_away(talk.now)


@pytest.mark.parametrize("why", ["wanted", "held", "pending", "under way"])
def test_a_leader_has_not_moved_away_while_something_is(why: str):
    talk = Talk()
    leases = talk.open(part(P0, (0, 0))) if why != "under way" else talk.open()
    if why == "under way":
        talk.pace.waiting = 1
        talk.fetch()
    if why != "wanted":
        talk.leader.want(frozenset())
    if why == "pending":
        leases[0].acknowledge(0, ACCEPT)

    assert not talk.leader.moved_away(talk.now)


def test_what_a_last_fetch_brings_is_worked_before_the_leader_has_moved_away():
    talk = Talk()
    request = talk.fetch()
    talk.leader.want(frozenset())
    talk.answer(request, fetched(part(P0, (0, 0))))
    talk.pace.waiting = 0
    (lease,) = talk.leases()

    before = talk.leader.moved_away(talk.now)
    lease.acknowledge(0, ACCEPT)
    talk.answer(talk.flush(), acknowledged(part(P0)))

    assert (False, True) == (before, talk.leader.moved_away(talk.now))


def test_locks_that_ended_keep_no_leader():
    talk = Talk()
    talk.open(part(P0, (0, 0)))
    talk.leader.want(frozenset())

    assert talk.leader.moved_away(now=30.0)


# Closing.


def test_closing_before_anything_was_sent_ends_at_once():
    talk = Talk()

    talk.leader.close()

    assert talk.leader.finished
    assert EVER == talk.leader.next_deadline(talk.now)


def test_closing_says_the_last_things_and_closes_the_session_in_one_request():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge_open(0, 2, ACCEPT)

    talk.leader.close()
    request = talk.acknowledge()
    talk.answer(request, acknowledged(part(P0)))

    assert CLOSING == request.share_session_epoch
    assert {0: ACCEPT, 1: ACCEPT} == each(request.acknowledgements[P0])
    assert [None] == talk.errors
    assert talk.leader.finished
    assert lease.term.over


def test_a_session_with_nothing_to_say_is_closed_too():
    talk = Talk()
    talk.open(part(P0, (0, 3)))

    talk.leader.close()
    request = talk.acknowledge()

    assert (CLOSING, {}) == (request.share_session_epoch, request.acknowledgements)


def test_closing_fetches_no_more():
    talk = Talk()
    talk.open()
    talk.pace.waiting = 1

    talk.leader.close()

    assert isinstance(talk.next(), ShareAcknowledge)


def test_closing_waits_for_the_fetch_that_is_under_way():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1
    under_way = talk.fetch()

    talk.leader.close()
    ended = talk.leader.finished
    talk.answer(under_way, fetched(part(P0, (4, 5))))
    request = talk.acknowledge()

    assert not ended
    assert [None] == talk.errors
    assert (CLOSING, {}) == (request.share_session_epoch, request.acknowledgements)


def test_closing_during_the_opening_fetch_closes_what_it_opened():
    talk = Talk()
    opening = talk.fetch()

    talk.leader.close()
    ended = talk.leader.finished
    talk.answer(opening, fetched(part(P0, (0, 3))))
    request = talk.acknowledge()
    talk.answer(request, acknowledged())

    assert (False, CLOSING) == (ended, request.share_session_epoch)
    assert talk.leader.finished


@pytest.mark.parametrize("code", [*OUTSIDE, 122, 123])
def test_closing_ends_when_the_opening_fetch_fails(code: int):
    talk = Talk()
    opening = talk.fetch()
    talk.leader.close()

    talk.answer(opening, fetched(error=code))

    assert talk.next() is None
    assert talk.leader.finished


def test_closing_ends_with_a_lost_connection():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.leader.close()

    talk.lose(talk.acknowledge())

    assert talk.leader.finished
    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors
    assert [] == talk.happened(MetadataStale) + talk.happened(LocksLost)


@pytest.mark.parametrize("code", [*OUTSIDE, 122, 123, 30, 42])
def test_whatever_the_close_is_answered_it_is_done_and_told(code: int):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.leader.close()

    talk.answer(talk.acknowledge(), acknowledged(error=code))

    assert talk.leader.finished
    assert 1 == len(talk.errors)
    assert None not in talk.errors


@pytest.mark.parametrize("code", [Code.INVALID_RECORD_STATE, Code.REQUEST_TIMED_OUT])
def test_what_the_close_could_not_say_has_failed(code: Code):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge_open(0, 4, ACCEPT)
    talk.leader.close()

    talk.answer(talk.acknowledge(), acknowledged(part(P0, acknowledge_error=code)))

    assert talk.leader.finished
    assert {"SHARE_SESSION_NOT_FOUND"} == set(talk.errors)
    assert 4 == sum(r.last_offset - r.first_offset + 1 for r in talk.journal.results)


def test_what_must_travel_apart_at_the_close_takes_a_request_more():
    talk = Talk()
    (early,) = talk.open(part(P0, (0, 0)))
    talk.now = 25.0
    (late,) = talk.open_more(part(P0, (5, 5)))
    early.acknowledge(0, ACCEPT)
    late.acknowledge(5, ACCEPT)
    talk.now = 29.5

    talk.leader.close()
    first = talk.acknowledge()
    talk.answer(first, acknowledged(part(P0)))
    second = talk.acknowledge()
    talk.answer(second, acknowledged(part(P0)))

    assert ({0: ACCEPT}, {5: ACCEPT}) == (
        each(first.acknowledgements[P0]),
        each(second.acknowledgements[P0]),
    )
    assert CLOSING == second.share_session_epoch != first.share_session_epoch
    assert [None, None] == talk.errors


def test_a_retry_at_the_close_does_not_spin():
    talk = Talk()
    (early,) = talk.open(part(P0, (0, 0)))
    talk.now = 20.0
    (late,) = talk.open_more(part(P0, (5, 5)))
    early.acknowledge(0, ACCEPT)
    late.acknowledge(5, ACCEPT)
    talk.now = 29.5
    talk.leader.close()

    answer = part(P0, acknowledge_error=Code.REQUEST_TIMED_OUT)
    talk.answer(talk.acknowledge(), acknowledged(answer))

    assert talk.next() is None
    assert 29.5 < talk.leader.next_deadline(talk.now) < 29.6


def test_a_renewal_at_the_close_is_no_renewal_any_more():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, RELEASE)

    talk.leader.close()
    request = talk.acknowledge()

    assert (CLOSING, False) == (request.share_session_epoch, request.renewing)
    assert {1: RELEASE} == each(request.acknowledgements[P0])
    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors


def test_closing_a_session_that_is_not_open_fails_what_waited_for_it():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.answer(talk.flush(), acknowledged(error=Code.INVALID_SHARE_SESSION_EPOCH))

    talk.leader.close()

    assert talk.leader.finished
    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors


def test_closing_is_not_held_up_by_a_pause():
    talk = Talk()
    talk.open()
    talk.pace.waiting = 1
    talk.answer(talk.fetch(), fetched(part(P0, error=Code.KAFKA_STORAGE_ERROR)))

    talk.leader.close()

    assert CLOSING == talk.acknowledge().share_session_epoch


def test_what_is_said_after_the_close_fails():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    talk.leader.close()
    talk.answer(talk.acknowledge(), acknowledged())

    lease.acknowledge(0, ACCEPT)

    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors
