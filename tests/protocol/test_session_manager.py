from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sharecons.protocol.fetch.session_manager import CLOSING, OPENING, ShareSession
from sharecons.protocol.messages import SharePartition
from tests.protocol.hypothesis_profile import MACHINE
from tests.protocol.message_factories import P0, P1, P2

NONE: frozenset[SharePartition] = frozenset()


def opened(*partitions: SharePartition) -> ShareSession:
    session = ShareSession()
    session.update(frozenset(partitions), NONE)
    session.next_epoch()
    session.on_fetch_response()
    return session


def test_a_session_begins_at_epoch_0():
    session = ShareSession()

    assert not session.is_open
    assert OPENING == session.epoch


def test_an_answered_fetch_opens_the_session():
    session = opened(P0)

    assert session.is_open
    assert 1 == session.epoch


def test_fetches_and_acknowledgements_are_numbered_together():
    session = opened(P0)

    first = session.next_epoch()
    session.update(frozenset({P0}), NONE)

    assert [1, 2, 3] == [first, session.next_epoch(), session.epoch]


def test_the_number_after_the_highest_is_1():
    session = opened(P0)
    session.epoch = 0x7FFFFFFF

    assert [0x7FFFFFFF, 1] == [session.next_epoch(), session.epoch]


def test_no_number_of_a_living_session_closes_or_opens_it():
    session = opened(P0)

    assert session.epoch not in (OPENING, CLOSING)


def test_the_opening_fetch_lists_every_wanted_partition():
    session = ShareSession()

    assert (frozenset({P0, P1}), NONE) == session.update(frozenset({P0, P1}), NONE)


def test_a_partition_that_the_leader_knows_is_not_listed_again():
    session = opened(P0)

    assert (frozenset({P1}), NONE) == session.update(frozenset({P0, P1}), NONE)


def test_a_partition_no_longer_wanted_is_forgotten_once():
    session = opened(P0, P1)

    first = session.update(frozenset({P1}), NONE)
    session.on_fetch_response()
    second = session.update(frozenset({P1}), NONE)

    assert (NONE, frozenset({P0})) == first
    assert (NONE, NONE) == second


def test_a_partition_is_forgotten_although_no_other_is_wanted():
    session = opened(P0)

    assert (NONE, frozenset({P0})) == session.update(NONE, NONE)


def test_a_recreated_topic_is_forgotten_and_listed_in_one_request():
    session = opened(P0)

    assert (frozenset({P1}), frozenset({P0})) == session.update(frozenset({P1}), NONE)


def test_a_partition_listed_for_its_acknowledgements_alone_is_forgotten_at_once():
    session = opened(P0)

    added, forgotten = session.update(frozenset({P0}), {P2})

    assert NONE == added
    assert frozenset({P2}) == forgotten


def test_an_unanswered_fetch_changes_nothing_of_what_the_leader_knows():
    session = opened(P0)

    session.update(frozenset({P0, P1}), NONE)

    assert frozenset({P0}) == session.partitions


def test_reset_session_keeps_its_locks_and_requests_every_partition_again():
    session = opened(P0, P1)
    term = session.lock_scope

    session.reset()

    assert OPENING == session.epoch
    assert (frozenset({P0}), NONE) == session.update(frozenset({P0}), NONE)
    assert term is session.lock_scope
    assert not term.ended


def test_a_lost_session_ends_its_life_and_says_why():
    session = opened(P0)
    term = session.lock_scope

    session.on_lost("the connection was lost")

    assert (True, "the connection was lost") == (term.ended, term.reason)
    assert OPENING == session.epoch
    assert NONE == session.partitions
    assert not session.lock_scope.ended


class SessionAtALeader(RuleBasedStateMachine):
    """The session's partitions, compared with those of a leader."""

    def __init__(self) -> None:
        super().__init__()
        self.session = ShareSession()
        self.leaders_epoch = 0
        self.leaders_partitions: set[SharePartition] = set()

    @rule(
        wanted=st.frozensets(st.sampled_from([P0, P1, P2])),
        acknowledged=st.frozensets(st.sampled_from([P0, P1, P2])),
        answered=st.booleans(),
    )
    def fetch(
        self,
        wanted: frozenset[SharePartition],
        acknowledged: frozenset[SharePartition],
        answered: bool,
    ) -> None:
        said = acknowledged if self.session.is_open else NONE
        added, forgotten = self.session.update(wanted, said)
        if not self.session.is_open:
            self.leaders_epoch, self.leaders_partitions = 0, set()
            assert wanted == added

        assert self.session.next_epoch() == self.leaders_epoch
        self.leaders_epoch += 1
        self.leaders_partitions |= added | said
        self.leaders_partitions -= forgotten
        assert wanted == self.leaders_partitions
        if answered:
            self.session.on_fetch_response()
        else:
            self.session.on_lost("no answer came")

    @rule()
    def acknowledge(self) -> None:
        if self.session.is_open:
            assert self.session.next_epoch() == self.leaders_epoch
            self.leaders_epoch += 1

    @rule()
    def reset(self) -> None:
        self.session.reset()

    @invariant()
    def the_life_goes_on(self) -> None:
        assert not self.session.lock_scope.ended


SessionAtALeader.TestCase.settings = MACHINE
TestSessionAtALeader = SessionAtALeader.TestCase
