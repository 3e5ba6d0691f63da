"""Records of one partition that were delivered together."""

from collections.abc import Iterator, Sequence
from typing import Any, Generic, final, overload

from sharecons.record import AcknowledgeType, AckTarget, KeyT, Record, ValueT

__all__ = ["Batch"]


@final
class Batch(Sequence[Record[KeyT, ValueT]], Generic[KeyT, ValueT]):
    """A sequence of records of one partition that one call can acknowledge.

    The methods acknowledge the records that have no acknowledgement yet: acknowledge
    single records first, then the rest. They behave, and raise, like the methods of
    `Record`.

    Attributes:
        topic, partition: where the records come from.
    """

    __slots__ = ("_lease", "_records", "_start", "_stop", "partition", "topic")

    def __init__(
        self, lease: AckTarget, records: Sequence[Record[KeyT, ValueT]], start: int
    ) -> None:
        self.topic = records[0].topic
        self.partition = records[0].partition
        self._lease = lease
        self._start = start
        self._stop = start + len(records)
        self._records = records

    @property
    def lock_deadline(self) -> float:
        """When the first lock ends, in seconds on `anyio.current_time()`'s clock."""
        return min(record.lock_deadline for record in self._records)

    @property
    def lock_remaining(self) -> float:
        """Seconds until `lock_deadline`; 0.0 if it has passed or a lock is lost."""
        return min(record.lock_remaining for record in self._records)

    @property
    def held(self) -> bool:
        """True while all records without an acknowledgement are held (`Record.held`).

        False if all records are acknowledged.
        """
        records = [each for each in self._records if self._lease.is_open(each.offset)]
        return bool(records) and all(record.held for record in records)

    def accept(self) -> None:
        """Mark the records as processed; see `Record.accept`."""
        self._acknowledge(AcknowledgeType.ACCEPT)

    @overload
    def release(self) -> None: ...

    @overload
    def release(self, *, after: float | None) -> None: ...

    def release(self, *, after: Any = None) -> None:
        """Return the records to the broker, to be delivered again.

        Args:
            after: seconds until the release; see `Record.release`.
        """
        if after is None:
            self._acknowledge(AcknowledgeType.RELEASE)
        else:
            self._lease.release_open_later(self._start, self._stop, after)

    def reject(self) -> None:
        """Archive the records; see `Record.reject`."""
        self._acknowledge(AcknowledgeType.REJECT)

    def renew(self) -> None:
        """Restart the locks; see `Record.renew`."""
        self._acknowledge(AcknowledgeType.RENEW)

    def _acknowledge(self, ack_type: AcknowledgeType) -> None:
        self._lease.acknowledge_open(self._start, self._stop, ack_type)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record[KeyT, ValueT]]:
        return iter(self._records)

    @overload
    def __getitem__(self, index: int) -> Record[KeyT, ValueT]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record[KeyT, ValueT]]: ...

    def __getitem__(
        self, index: int | slice
    ) -> Record[KeyT, ValueT] | Sequence[Record[KeyT, ValueT]]:
        return self._records[index]

    def __repr__(self) -> str:
        first, last = self._records[0].offset, self._records[-1].offset
        where = f"{self.topic}-{self.partition}@{first}..{last}"
        return f"<Batch {where}, {len(self)} records>"
