"""The table of transitions between the states of a member."""

import itertools
from collections.abc import Sequence

import pytest

from sharecons.protocol.group.heartbeat import Membership
from sharecons.protocol.group.states import TRANSITIONS, MembershipEvent, State
from tests.protocol.membership_harness import (
    CONNECTION_LOST,
    coordinator_response,
    error_response,
    heartbeat_response,
    new_member,
)
from tests.protocol.message_factories import P0


def test_every_state_is_reached_by_a_transition():
    assert set(State) == {State.OUT, *TRANSITIONS.values()}


def test_every_state_has_transitions_to_subscribe_and_to_leave():
    both = (MembershipEvent.SUBSCRIBED, MembershipEvent.LEAVE_REQUESTED)

    assert not set(itertools.product(State, both)) - TRANSITIONS.keys()


class RecordingTransitions:
    """The table of transitions; records the entries that a member used."""

    def __init__(self) -> None:
        self.used: set[tuple[State, MembershipEvent]] = set()

    def __getitem__(self, entry: tuple[State, MembershipEvent]) -> State:
        self.used.add(entry)
        return TRANSITIONS[entry]


def perform(membership: Membership, action: str, now: float) -> bool:
    """Make one public call; return False if no request was due for it."""
    if action == "subscribe":
        membership.subscribe(("orders",), now)
    elif action == "unsubscribe":
        membership.subscribe((), now)
    elif action == "close":
        membership.close(now)
    else:
        request = membership.next_request(now)
        if request is None:
            return False
        if action == "lost":
            membership.on_error(request, CONNECTION_LOST, now)
        elif hasattr(request, "member_epoch"):
            heartbeat = (
                heartbeat_response(1, P0)
                if action == "good"
                else error_response(int(action))
            )
            membership.on_response(request, heartbeat, now)
        else:
            code = 0 if action == "good" else int(action)
            membership.on_response(request, coordinator_response(code), now)
    return True


def perform_sequences(actions: Sequence[str], length: int) -> None:
    """Perform all sequences of actions up to this length.

    A sequence is not continued after an action that had no effect: the sequence
    without that action is performed as well.
    """
    sequences: list[tuple[str, ...]] = [()]
    while sequences:
        before = sequences.pop()
        for action in actions:
            membership = new_member()
            sequence = (*before, action)
            effective = [
                perform(membership, each, now=10.0 * turn)
                for turn, each in enumerate(sequence)
            ]
            if effective[-1] and len(sequence) < length:
                sequences.append(sequence)


def test_any_sequence_of_calls_stays_in_the_table_and_each_entry_is_used(
    monkeypatch: pytest.MonkeyPatch,
):
    """A KeyError would be raised by a transition that is not in the table."""
    table = RecordingTransitions()
    monkeypatch.setattr("sharecons.protocol.group.heartbeat.TRANSITIONS", table)
    actions = ("subscribe", "unsubscribe", "close", "good", "lost", "110", "30", "16")

    perform_sequences(actions, length=5)

    assert TRANSITIONS.keys() == table.used
