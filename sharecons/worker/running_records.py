"""The records in calls, in a file in memory that another process reads after a crash.

A process that ends by a signal or by `os._exit` cannot log which records it processed.
So the supervisor of `sharecons run` gives each of its processes a file, which the
worker maps into its memory: writing there takes no system call, and outlives the
process.

The first line of the file has the names of the topics. Behind it, each slot of
the worker has an entry: the number of records in its call, and the positions of the
first ones. An entry of 0 records is no call.
"""

import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import IO, Any, Final, NamedTuple, final

from sharecons.worker.machine.item import WorkItem

__all__ = ["MAX_ENTRIES", "MAX_NAMED", "RunningRecords", "open_file", "read_running"]

MAX_NAMED: Final = 20
"""How many positions an entry has, and a text names."""

MAX_ENTRIES: Final = 10_000
"""Slots beyond this number share an entry that is not read."""

COUNT: Final = Struct("=I")
POSITION: Final = Struct("=Hiqh")
ONE: Final = Struct("=IHiqh")
"""An entry's number of records, 1, and the position: index of the topic, partition,
offset, delivery count."""

SIZE: Final = COUNT.size + MAX_NAMED * POSITION.size
UNKNOWN: Final = 0xFFFF
MAX_TOPIC: Final = 249
"""Characters of a topic's name."""


@final
class RunningRecords:
    """Writes the positions of the records in calls.

    Args:
        descriptor: of the file; it can be closed afterwards.
        topics: the topics of the records.
        slots: how many calls run at a time.

    Raises:
        OSError, ValueError: there is no space for it.
    """

    def __init__(self, descriptor: int, topics: Iterable[str], slots: int) -> None:
        names = list(topics)
        header = ",".join(names).encode() + b"\n"
        # One is for threads, and one is not read.
        entries = min(slots, MAX_ENTRIES) + 2
        # Written, because a page that a full disk has no block for is a SIGBUS.
        os.pwrite(descriptor, header + bytes(entries * SIZE), 0)
        self._memory = mmap.mmap(descriptor, len(header) + entries * SIZE)
        self._topics = {name: index for index, name in enumerate(names)}
        starts = range(len(header), len(self._memory), SIZE)
        self._of_threads, *free, self._unread = starts
        self._free = free[::-1]

    def new_entry(self) -> int:
        """Return an entry for a slot."""
        return self._free.pop() if self._free else self._unread

    def end_entry(self, entry: int) -> None:
        """Free the entry of a slot that has ended."""
        if entry != self._unread:
            self.clear(entry)
            self._free.append(entry)

    def write(self, entry: int, items: Sequence[WorkItem]) -> None:
        """Write the records of a call that begins, in place of the last call's."""
        if len(items) != 1:
            self._write_all(entry, [item.record for item in items])
            return
        # Once per call: a single packing, without a function of its own.
        record = items[0].record
        ONE.pack_into(
            self._memory,
            entry,
            1,
            self._topics.get(record.topic, UNKNOWN),
            record.partition,
            record.offset,
            record.delivery_count,
        )

    def clear(self, entry: int) -> None:
        """Write that a slot makes no call."""
        COUNT.pack_into(self._memory, entry, 0)

    def set_threads(self, arguments: Iterable[Any]) -> None:
        """Write the records of cancelled calls that go on in threads.

        Args:
            arguments: of their handlers: records, or batches of records.
        """
        records: list[Any] = []
        for argument in arguments:
            records += argument if isinstance(argument, Sequence) else (argument,)
        self._write_all(self._of_threads, records)

    def _write_all(self, entry: int, records: Sequence[Any]) -> None:
        start = entry + COUNT.size
        for record in records[:MAX_NAMED]:
            topic = self._topics.get(record.topic, UNKNOWN)
            numbers = record.partition, record.offset, record.delivery_count
            POSITION.pack_into(self._memory, start, topic, *numbers)
            start += POSITION.size
        COUNT.pack_into(self._memory, entry, len(records))


class _Position(NamedTuple):
    """Where a record is, with the index of its topic."""

    topic: int
    partition: int
    offset: int
    delivery_count: int


def open_file() -> IO[bytes]:
    """Return a new file in memory, or a temporary one where a system has none.

    Raises:
        OSError: there is no place for it.
    """
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("sharecons-running"), "r+b", buffering=0)
    # Pythons for old systems lack memfd_create; containers often have a read-only disk.
    shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryFile(buffering=0, dir=shm)


def read_running(file: IO[bytes]) -> str | None:
    """Return the records in calls as "orders-0@5 (delivery 3), ..."; None for none.

    Those with the most deliveries come first: they are the likeliest cause. A process
    whose memory was overwritten can have left anything in the file.
    """
    data = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
    header, _, entries = data.partition(b"\n")
    topics = header.decode(errors="replace").split(",")
    total = 0
    named: list[_Position] = []
    for start in range(0, len(entries) - 2 * SIZE + 1, SIZE):
        (count,) = COUNT.unpack_from(entries, start)
        end = start + COUNT.size + min(count, MAX_NAMED) * POSITION.size
        packed = entries[start + COUNT.size : end]
        named += map(_Position._make, POSITION.iter_unpack(packed))
        total += count
    known = [each for each in dict.fromkeys(named) if each.topic < len(topics)]
    known.sort(key=lambda each: each.delivery_count, reverse=True)
    texts = [
        f"{topics[each.topic][:MAX_TOPIC]}-{each.partition}@{each.offset} "
        f"(delivery {each.delivery_count})"
        for each in known[:MAX_NAMED]
    ]
    more = total - len(named) + len(known) - len(texts)
    text = ", ".join(texts)
    return f"{text} and {more} more" if more and text else text or None
