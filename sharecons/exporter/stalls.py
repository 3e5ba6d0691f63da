"""Reasons why partitions are stalled, by the rules of `sharecons groups inspect`."""

from collections.abc import Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.group_state.group_states import GroupState
from sharecons.inspection.diagnosis.findings import Reason, findings_of

__all__ = ["stalls_of"]

WITHOUT_STATE: Final = frozenset({Reason.NO_MEMBERS, Reason.UNASSIGNED})
"""Reasons that are known without the state."""

WITH_STATE: Final = WITHOUT_STATE | {
    Reason.WINDOW_FULL,
    Reason.NO_PROGRESS,
    Reason.HELD,
}


def stalls_of(
    group: GroupState, now: float
) -> Mapping[TopicPartition, tuple[Reason, ...]]:
    """Return the reasons for which each partition is stalled.

    A reason is left out if the data for it could not be read.
    """
    facts = group.facts
    if facts is None:
        return {}
    stalls: dict[TopicPartition, tuple[Reason, ...]] = {}
    for key, one in group.partitions.items():
        if not one.is_unsettled_known:
            continue
        has_all = one.has_state and facts.record_locks is not None
        known = WITH_STATE if has_all else WITHOUT_STATE
        unchanged = None if one.unchanged_since is None else now - one.unchanged_since
        found = findings_of(one, facts, now=now, unchanged_for=unchanged)
        stalls[key] = tuple(each.reason for each in found if each.reason in known)
    return stalls
