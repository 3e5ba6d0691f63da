"""The share session: epochs and partitions."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sharecons.protocol.fetch.session_manager import OPENING, ShareSession
from sharecons.protocol.partitions import SharePartition
from tests.protocol.hypothesis_profile import MACHINE, search
from tests.protocol.message_factories import P0, P1, P2

NONE: frozenset[SharePartition] = frozenset()


def opened(*partitions: SharePartition) -> ShareSession:
    session = ShareSession()
    session.update(frozenset(partitions), NONE)
    session.next_epoch()
    session.on_fetch_response()
    return session


def test_session_is_open_after_the_first_fetch_response():
    session = opened(P0)

    assert session.is_open
    assert 1 == session.epoch


def test_epoch_after_the_highest_is_1():
    session = opened(P0)
    session.epoch = 0x7FFFFFFF

    assert [0x7FFFFFFF, 1] == [session.next_epoch(), session.epoch]


def test_partition_of_the_session_is_not_added_again():
    session = opened(P0)

    assert (frozenset({P1}), NONE) == session.update(frozenset({P0, P1}), NONE)


def test_unassigned_partition_is_forgotten_once():
    session = opened(P0, P1)

    first = session.update(frozenset({P1}), NONE)
    session.on_fetch_response()
    second = session.update(frozenset({P1}), NONE)

    assert (NONE, frozenset({P0})) == first
    assert (NONE, NONE) == second


def test_partition_that_is_only_acknowledged_is_forgotten_in_the_same_request():
    session = opened(P0)

    added, forgotten = session.update(frozenset({P0}), {P2})

    assert NONE == added
    assert frozenset({P2}) == forgotten


def test_fetch_without_a_response_does_not_change_the_partitions():
    session = opened(P0)

    session.update(frozenset({P0, P1}), NONE)

    assert frozenset({P0}) == session.partitions


def test_reset_session_keeps_its_locks_and_adds_every_partition_again():
    session = opened(P0, P1)
    lock_scope = session.lock_scope

    session.reset()

    assert OPENING == session.epoch
    assert (frozenset({P0}), NONE) == session.update(frozenset({P0}), NONE)
    assert lock_scope is session.lock_scope
    assert not lock_scope.ended


def test_lost_session_ends_its_lock_scope_with_a_reason():
    session = opened(P0)
    lock_scope = session.lock_scope

    session.on_lost("the connection was lost")

    assert (True, "the connection was lost") == (lock_scope.ended, lock_scope.reason)
    assert OPENING == session.epoch
    assert NONE == session.partitions
    assert not session.lock_scope.ended


class SessionAtALeader(RuleBasedStateMachine):
    """A session, compared with the epoch and partitions of its leader."""

    def __init__(self) -> None:
        super().__init__()
        self.session = ShareSession()
        self.leader_epoch = 0
        self.leader_partitions: set[SharePartition] = set()

    @rule(
        assigned=st.frozensets(st.sampled_from([P0, P1, P2])),
        acknowledged=st.frozensets(st.sampled_from([P0, P1, P2])),
        succeeds=st.booleans(),
    )
    def fetch(
        self,
        assigned: frozenset[SharePartition],
        acknowledged: frozenset[SharePartition],
        succeeds: bool,
    ) -> None:
        sent = acknowledged if self.session.is_open else NONE
        added, forgotten = self.session.update(assigned, sent)
        if not self.session.is_open:
            self.leader_epoch, self.leader_partitions = 0, set()
            assert assigned == added

        assert self.session.next_epoch() == self.leader_epoch
        self.leader_epoch += 1
        self.leader_partitions |= added | sent
        self.leader_partitions -= forgotten
        assert assigned == self.leader_partitions
        if succeeds:
            self.session.on_fetch_response()
        else:
            self.session.on_lost("no response")

    @rule()
    def acknowledge(self) -> None:
        if self.session.is_open:
            assert self.session.next_epoch() == self.leader_epoch
            self.leader_epoch += 1

    @rule()
    def reset(self) -> None:
        self.session.reset()

    @invariant()
    def lock_scope_has_not_ended(self) -> None:
        assert not self.session.lock_scope.ended


SessionAtALeader.TestCase.settings = MACHINE
TestSessionAtALeader = search(SessionAtALeader.TestCase)
