"""The states of a member, and the transitions between them.

docs/design.md draws its diagram from TRANSITIONS.
"""

import enum
from collections.abc import Mapping
from typing import Final

__all__ = ["TRANSITIONS", "MembershipEvent", "State"]


class State(enum.Enum):
    OUT = "out"
    JOINING = "joining"
    MEMBER = "member"
    LEAVING = "leaving"
    REFUSED = "refused"


class MembershipEvent(enum.Enum):
    SUBSCRIBED = "subscribed"
    ADMITTED = "admitted"
    FENCED = "fenced"
    LEAVE_REQUESTED = "leave requested"
    LEFT = "left"
    REFUSED = "refused"


TRANSITIONS: Final[Mapping[tuple[State, MembershipEvent], State]] = {
    (State.OUT, MembershipEvent.SUBSCRIBED): State.JOINING,
    (State.OUT, MembershipEvent.LEAVE_REQUESTED): State.OUT,
    (State.JOINING, MembershipEvent.SUBSCRIBED): State.JOINING,
    (State.JOINING, MembershipEvent.ADMITTED): State.MEMBER,
    (State.JOINING, MembershipEvent.FENCED): State.JOINING,
    # The coordinator might have handled the join, although its response was lost.
    (State.JOINING, MembershipEvent.LEAVE_REQUESTED): State.LEAVING,
    (State.JOINING, MembershipEvent.REFUSED): State.REFUSED,
    (State.MEMBER, MembershipEvent.SUBSCRIBED): State.MEMBER,
    (State.MEMBER, MembershipEvent.ADMITTED): State.MEMBER,
    (State.MEMBER, MembershipEvent.FENCED): State.JOINING,
    (State.MEMBER, MembershipEvent.LEAVE_REQUESTED): State.LEAVING,
    (State.MEMBER, MembershipEvent.REFUSED): State.REFUSED,
    # Subscribed again while the leave is in flight: leave first, then join.
    (State.LEAVING, MembershipEvent.SUBSCRIBED): State.LEAVING,
    (State.LEAVING, MembershipEvent.LEAVE_REQUESTED): State.LEAVING,
    (State.LEAVING, MembershipEvent.LEFT): State.OUT,
    (State.REFUSED, MembershipEvent.SUBSCRIBED): State.REFUSED,
    (State.REFUSED, MembershipEvent.LEAVE_REQUESTED): State.REFUSED,
}
