"""The collector: reads all groups of a cluster, again and again."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import final

import anyio

from sharecons.admin import ShareGroupAdmin
from sharecons.errors import ConnectionFailedError, Error
from sharecons.group_state.group_states import GroupState, Source, with_earlier_values
from sharecons.group_state.read_groups import FoundOffsets, States, read_groups
from sharecons.group_state.reading_errors import Errors
from sharecons.group_state.stored_states import read_all_states

__all__ = ["CollectedGroups", "GroupCollector"]


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
        if not ids:
            return {}
        described = errors.added(
            "groups", await self._admin.describe_share_groups(*ids)
        )

        async def states(offsets: FoundOffsets) -> States:
            return await read_all_states(self._admin, offsets, errors)

        return await read_groups(
            self._admin, described, states, errors, before=self.latest
        )

    def _is_chosen(self, group_id: str) -> bool:
        return not self._patterns or any(
            fnmatchcase(group_id, each) for each in self._patterns
        )
