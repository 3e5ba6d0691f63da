"""The collector: reads all groups of a cluster, again and again."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, final

import anyio

from sharecons.admin import Results, ShareGroup, ShareGroupAdmin
from sharecons.errors import ConnectionFailedError, Error, RequestTimedOutError
from sharecons.group_state.gather import failed
from sharecons.group_state.group_states import GroupState, Source, with_earlier_values
from sharecons.group_state.read_groups import FoundOffsets, States, read_groups
from sharecons.group_state.reading_errors import Errors
from sharecons.group_state.stored_states import read_all_states
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.codes import Code

__all__ = ["CollectedGroups", "GroupCollector"]

WAIT: Final = 2.0
"""Seconds for groups that were not listed; the others are read after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedGroups:
    """The result of one collection.

    Attributes:
        at: time, in seconds since the epoch.
        duration: in seconds.
        groups: by id.
        error_counts: number of errors, by what could not be read.
        error_messages: without duplicates.
        reached: False if no broker responded.
    """

    at: float
    duration: float
    groups: Mapping[str, GroupState] = field(default_factory=dict)
    error_counts: Mapping[Source, int] = field(default_factory=dict)
    error_messages: tuple[str, ...] = ()
    reached: bool = True


@final
class GroupCollector:
    """Reads the groups whose ids match one of the patterns.

    Args:
        admin: sends the requests.
        patterns: like file names: `billing-*`. None means all groups.
        limit: seconds for one collection.

    Attributes:
        latest: the groups of the latest collection, with the values of earlier ones
            where none could be read: `unread` has their time and the error.
    """

    def __init__(
        self, admin: ShareGroupAdmin, patterns: Iterable[str] = (), limit: float = 30.0
    ) -> None:
        self._admin = admin
        self._patterns = tuple(patterns)
        self._limit = limit
        self.latest: Mapping[str, GroupState] = {}
        self._unlisted: Error | None = None

    async def collect(self) -> CollectedGroups:
        """Read all groups once. Errors are in the result; nothing is raised.

        Can be cancelled at any time.
        """
        began = time.monotonic()
        errors = Errors()
        groups: dict[str, GroupState] = {}
        reached = False
        self._unlisted = None
        with anyio.move_on_after(self._limit) as scope:
            try:
                groups = await self._groups(errors)
                reached = True
            except Error as error:
                errors.add("cluster", [error])
                reached = not isinstance(error, ConnectionFailedError)
        if scope.cancelled_caught:
            late = f"the collection took more than {self._limit:g} s"
            errors.add("cluster", [ConnectionFailedError(late)])
        unlisted = next(iter(errors.of("cluster")), self._unlisted)
        self.latest = with_earlier_values(groups, self.latest, unlisted)
        return CollectedGroups(
            at=time.time(),
            duration=time.monotonic() - began,
            groups=groups,
            error_counts=errors.counts,
            error_messages=errors.messages,
            reached=reached,
        )

    def unreachable(self, error: Error) -> CollectedGroups:
        """Return a collection without groups; `latest` keeps its values."""
        self.latest = with_earlier_values({}, self.latest, error)
        return CollectedGroups(
            at=time.time(),
            duration=0.0,
            error_counts={"cluster": 1},
            error_messages=(str(error),),
            reached=False,
        )

    async def _groups(self, errors: Errors) -> dict[str, GroupState]:
        listing = await self._admin.list_groups()
        errors.add("groups", listing.errors.values())
        self._unlisted = next(iter(listing.errors.values()), None)
        ids = [key for key in listing.groups if self._is_chosen(key)]
        unlisted = [key for key in self.latest if key not in listing.groups]
        if unlisted and self._unlisted is None:
            ids += await self._existing(unlisted, errors)
        if not ids:
            return {}
        # A group can be deleted after it was listed.
        described = errors.added(
            "groups", _without_deleted(await self._admin.describe_share_groups(*ids))
        )

        async def states(offsets: FoundOffsets) -> States:
            return await read_all_states(self._admin, offsets, errors)

        return await read_groups(
            self._admin, described, states, errors, before=self.latest
        )

    async def _existing(self, ids: list[str], errors: Errors) -> list[str]:
        """Return which groups exist and can be read, though no broker listed them.

        Brokers of Kafka 4.4 that stop list no groups, without an error. Other groups
        than deleted ones keep their earlier values.
        """
        late = RequestTimedOutError(f"not listed, and no response in {WAIT:g} s")
        found: Results[str, ShareGroup] = failed(ids, late)
        with anyio.move_on_after(WAIT):
            found = await self._admin.describe_share_groups(*ids)
        left = errors.added("groups", _without_deleted(found))
        self._unlisted = next(iter(left.errors.values()), None)
        deleted = found.keys() - left.keys()
        self.latest = {k: one for k, one in self.latest.items() if k not in deleted}
        return list(left.found)

    def _is_chosen(self, group_id: str) -> bool:
        return not self._patterns or any(
            fnmatchcase(group_id, each) for each in self._patterns
        )


def _without_deleted(described: Results[str, ShareGroup]) -> Results[str, ShareGroup]:
    return Results(
        {
            key: one
            for key, one in described.items()
            if not is_code(one.error, Code.GROUP_ID_NOT_FOUND)
        }
    )
