"""Stores the progress of a redrive in the committed offsets of a group.

So it is on the cluster, and another machine can continue. Brokers delete committed
offsets of a group without members after offsets.retention.minutes, 7 days by default.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import CommittedOffset, ShareGroupAdmin
from sharecons.dead_letters.progress import (
    Progress,
    decode_metadata,
    encode_metadata,
)
from sharecons.errors import ConfigurationError, Error

__all__ = ["GROUP_PREFIX", "ProgressStore", "RedriveConflictError"]

GROUP_PREFIX: Final = "sharecons-redrive."

Stored = Mapping[TopicPartition, Progress | None]


class RedriveConflictError(Error):
    """Another process has continued the redrive of the same name meanwhile."""


class ProgressStore:
    """The progress of one redrive, by partition of the dead-letter topic.

    Several processes can use one name. Before it stores, each checks that the progress
    is still what it has stored last; if not, the other one goes on, and it ends.
    """

    def __init__(self, admin: ShareGroupAdmin, name: str) -> None:
        self.group_id = f"{GROUP_PREFIX}{name}"
        self._name = name
        self._admin = admin
        self._known: dict[TopicPartition, Progress | None] = {}

    async def load(self, keys: Iterable[TopicPartition]) -> Stored:
        """Return the progress of partitions; None for those without.

        Raises:
            ConfigurationError: the group has offsets that no redrive has stored.
            BrokerError: the offsets cannot be read.
        """
        found = await self._fetch(keys)
        self._known.update(found)
        return found

    async def save(self, progress: Mapping[TopicPartition, Progress]) -> None:
        """Store the progress of partitions.

        Raises:
            RedriveConflictError: another process has stored its own.
            BrokerError: the offsets cannot be committed.
        """
        await self.check(progress)
        committed = await self._admin.alter_consumer_group_offsets(
            self.group_id,
            {
                key: CommittedOffset(offset=each.offset, metadata=encode_metadata(each))
                for key, each in progress.items()
            },
        )
        for error in committed.errors.values():
            raise error
        self._known.update(progress)

    async def check(self, keys: Iterable[TopicPartition]) -> None:
        """Check that the stored progress is the known progress.

        Raises:
            RedriveConflictError: it is not.
        """
        wanted = tuple(keys)
        found = await self._fetch(wanted)
        for key in wanted:
            if found[key] != self._known.get(key):
                raise RedriveConflictError(
                    f"redrive {self._name!r}: another process has changed the "
                    f"progress of {key.topic}-{key.partition}; this one ends. Run one "
                    "redrive of a name at a time"
                )

    async def _fetch(
        self, keys: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Progress | None]:
        wanted = tuple(keys)
        listed = await self._admin.list_consumer_group_offsets(
            self.group_id, partitions=wanted
        )
        offsets = listed[self.group_id].value
        return {key: self._decoded(key, offsets[key].value) for key in wanted}

    def _decoded(
        self, key: TopicPartition, committed: CommittedOffset | None
    ) -> Progress | None:
        if committed is None:
            return None
        try:
            return decode_metadata(committed.offset, committed.metadata)
        except ValueError as error:
            raise ConfigurationError(
                f"group {self.group_id!r} has an offset of {key.topic}-{key.partition} "
                f"that no redrive has stored ({error}): use another name"
            ) from None
