"""The states of partitions, from their share coordinator or from its records."""

import enum
from collections.abc import Collection, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

import anyio

from sharecons._record import TopicPartition
from sharecons.admin import (
    GroupOffset,
    Results,
    ShareGroupAdmin,
    SharePartitionState,
)
from sharecons.errors import AuthorizationError, Error
from sharecons.group_state.assemble import StoredState
from sharecons.group_state.gather import failed
from sharecons.group_state.reading_errors import Errors

if TYPE_CHECKING:
    # Loaded only if states are read from records.
    from sharecons.admin.state_replay import RecordedState

__all__ = [
    "StateSource",
    "StoredState",
    "read_all_states",
    "read_states",
    "read_times_of_last_write",
]

MAX_SECONDS: Final = 5.0
"""Seconds for reading when states were written last; it is left out afterwards."""


class StateSource(enum.Enum):
    """The source of states."""

    AUTO = "auto"
    """The coordinator; records if that is not allowed. Of partitions that can stand
    still, the time of the last change is read from the records, if that is allowed."""
    COORDINATOR = "coordinator"
    """ReadShareGroupState, which needs CLUSTER_ACTION on the cluster."""
    RECORDS = "records"
    """The records of `__share_group_state`, which needs READ on that topic."""


async def read_states(
    admin: ShareGroupAdmin,
    group_id: str,
    keys: tuple[TopicPartition, ...],
    source: StateSource,
) -> tuple[Results[TopicPartition, StoredState], StateSource]:
    """Return the states, and where they were read; never `AUTO`.

    Raises:
        AuthorizationError: both sources are forbidden.
        Others as the methods of `ShareGroupAdmin`.
    """
    if source is StateSource.RECORDS:
        return await _states_from_records(admin, group_id, keys), source
    read = await admin.read_state(group_id, keys)
    rejected = [e for e in read.errors.values() if isinstance(e, AuthorizationError)]
    if source is StateSource.AUTO and rejected:
        recorded = await _states_from_records(admin, group_id, keys)
        for error in recorded.errors.values():
            if isinstance(error, AuthorizationError):
                raise _both_forbidden_error(group_id, rejected[0], error) from error
        return recorded, StateSource.RECORDS
    return read.map(lambda state: StoredState(state=state)), StateSource.COORDINATOR


async def read_all_states(
    admin: ShareGroupAdmin,
    offsets: Mapping[str, Mapping[TopicPartition, GroupOffset]],
    errors: Errors,
) -> Mapping[str, Results[TopicPartition, StoredState]]:
    """Return the stored states of many groups, from their coordinators.

    Without the permission, which is for all groups, one request finds out.
    """
    # Without a start offset, there is no state.
    stored = {
        group_id: tuple(k for k, one in each.items() if one.start_offset is not None)
        for group_id, each in offsets.items()
    }
    wanted = {group_id: keys for group_id, keys in stored.items() if keys}
    first = dict(islice(wanted.items(), 1))
    states = await _read_stored(admin, first)
    rest = {group_id: wanted[group_id] for group_id in wanted if group_id not in first}
    for found in states.values():
        if (forbidden := _forbidden_error(found)) is not None:
            errors.add("states", [forbidden])
            return states | {
                group_id: failed(keys, forbidden) for group_id, keys in rest.items()
            }
    states |= await _read_stored(admin, rest)
    for found in states.values():
        errors.added("states", found)
    return states


async def _read_stored(
    admin: ShareGroupAdmin, wanted: Mapping[str, tuple[TopicPartition, ...]]
) -> dict[str, Results[TopicPartition, StoredState]]:
    try:
        read = await admin.read_states(wanted)
    except Error as error:
        return {group_id: failed(keys, error) for group_id, keys in wanted.items()}
    return {
        group_id: found.map(lambda state: StoredState(state=state))
        for group_id, found in read.items()
    }


def _forbidden_error(
    read: Results[TopicPartition, StoredState],
) -> AuthorizationError | None:
    for error in read.errors.values():
        if isinstance(error, AuthorizationError):
            text = (
                f"states are not read ({error.name}), as that needs CLUSTER_ACTION on "
                "the cluster; delivery counts and records in flight are left out"
            )
            return AuthorizationError(text, code=error.code, name=error.name)
    return None


async def _states_from_records(
    admin: ShareGroupAdmin, group_id: str, keys: tuple[TopicPartition, ...]
) -> Results[TopicPartition, StoredState]:
    def state(recorded: "RecordedState | None") -> StoredState:
        if recorded is None:
            nothing = SharePartitionState(start_offset=None, state_epoch=0, batches=())
            return StoredState(state=nothing)
        return StoredState(state=recorded.state, last_written=recorded.last_written)

    return (await admin.read_state_records(group_id, keys)).map(state)


def _both_forbidden_error(
    group_id: str, rejected: AuthorizationError, also: AuthorizationError
) -> AuthorizationError:
    text = (
        f"cannot read the state of group {group_id!r}: {rejected.name}, and "
        f"{also.name} for __share_group_state; this principal needs CLUSTER_ACTION on "
        "the cluster, or READ on that topic"
    )
    return AuthorizationError(text, code=rejected.code, name=rejected.name)


async def read_times_of_last_write(
    admin: ShareGroupAdmin, group_id: str, keys: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Return when states were written, in milliseconds since the epoch.

    A group's state is written first when its first member subscribes. Partitions whose
    records cannot be read are left out.
    """
    if keys:
        with suppress(Error), anyio.move_on_after(MAX_SECONDS):
            recorded = await admin.read_state_records(group_id, keys)
            return {
                key: each.last_written
                for key, each in recorded.found.items()
                if each is not None
            }
    return {}
