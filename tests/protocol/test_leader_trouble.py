"""Whatever a broker answers, or not: what a leader's machine makes of it."""

import pytest

from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    ConnectionFailedError,
    LockLostError,
    UnsupportedVersionError,
)
from sharecons.protocol import error_actions
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction
from sharecons.protocol.fetch.events import (
    FatalError,
    LeaderMoved,
    LocksLost,
    MetadataStale,
    PartitionError,
)
from sharecons.protocol.messages import PartitionLeader
from sharecons.record import ACCEPT
from tests.protocol.making import EVER, P0, P1, acknowledged, each, fetched, part
from tests.protocol.talk import Talk

MOVED = (Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH)
OUTSIDE = [Code.UNKNOWN_SERVER_ERROR, Code.SHARE_SESSION_LIMIT_REACHED, 9_999]


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
    assert not lease.term.ended


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

    assert lease.term.ended
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
    assert not lease.term.ended


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
    "code", [c for c, r in error_actions.FETCH.items() if r is ErrorAction.REFUSE]
)
def test_a_refusal_ends_it_and_says_why(code: int):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    talk.answer(talk.flush(), acknowledged(error=code, message="so it says"))

    (refused,) = talk.happened(FatalError)
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

    assert [kind] == [type(h.error) for h in talk.happened(FatalError)]


def test_a_throttled_leader_is_left_alone_as_long_as_it_says():
    talk = Talk()

    talk.answer(talk.fetch(), fetched(part(P0, (0, 0)), throttle=3.0))
    talk.leases()

    assert talk.next() is None
    assert 3.0 == talk.leader.next_deadline(talk.now)


# Errors of partitions.


@pytest.mark.parametrize("code", error_actions.FETCH_PARTITION)
def test_each_code_of_a_partition_has_its_happening(code: int):
    talk = Talk()
    leader = PartitionLeader(2, 5)

    talk.answer(talk.fetch(), fetched(part(P0, error=code, leader=leader)))

    expected = {
        ErrorAction.PROCEED: [],
        ErrorAction.MOVE: [LeaderMoved(P0, leader)],
        ErrorAction.DESCRIBE: [MetadataStale(Code(code).name)],
        ErrorAction.REPORT: [PartitionError(P0, code, None)],
    }
    assert expected[error_actions.FETCH_PARTITION[code]] == talk.leader.events


@pytest.mark.parametrize(
    "code",
    [Code.KAFKA_STORAGE_ERROR, Code.OFFSET_NOT_AVAILABLE, Code.UNKNOWN_SERVER_ERROR],
)
def test_a_passing_error_is_silent_and_asked_about_after_a_pause(code: Code):
    talk = Talk()

    talk.answer(talk.fetch(), fetched(part(P0, error=code)))

    assert [] == talk.leader.events
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
    assert 1 == len(talk.happened(PartitionError))
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

    assert [LeaderMoved(P0, leader)] == talk.leader.events
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

    assert [FatalError(old)] == talk.happened(FatalError)
    assert talk.leader.finished


def test_a_verb_after_the_connection_was_lost_raises():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    talk.pace.waiting = 1
    talk.lose(talk.fetch())

    with pytest.raises(LockLostError, match="the connection to node"):
        lease.acknowledge(0, ACCEPT)
    assert [] == talk.errors


def test_a_connection_lost_between_two_requests_loses_the_locks_and_opens_anew():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    error = ConnectionFailedError("the broker closed the connection")

    talk.leader.connection_lost(error, talk.now)
    talk.pace.waiting = 1
    talk.now = talk.leader.next_deadline(talk.now)
    opening = talk.fetch()

    assert lease.term.ended
    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors
    assert [(lease,)] == [h.leases for h in talk.happened(LocksLost)]
    assert 1 == len(talk.happened(MetadataStale))
    assert (0, {}) == (opening.share_session_epoch, opening.acknowledgements)


def test_a_connection_lost_while_nothing_is_held_ends_a_leader_that_closes():
    talk = Talk()
    talk.open(part(P0, (0, 3)))
    talk.leader.close()

    talk.leader.connection_lost(ConnectionFailedError("gone"), talk.now)

    assert talk.leader.finished
    assert [] == talk.happened(LocksLost)
