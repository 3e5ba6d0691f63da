"""The journal of a client's process: one line for each thing that happens to a record.

`KIND NANOSECONDS NUMBER TOPIC PARTITION OFFSET DELIVERY_COUNT [ERROR]`; the time is
CLOCK_MONOTONIC of the machine, even if the clocks of the process jump. Each write has
whole lines and is not buffered, so that a killed process loses none.

    begun       the handler is called
    handled     the handler has succeeded
    raised      the handler has raised, or was cancelled
    crashes     the handler now ends its process; the last word says how
    rejected    the handler has rejected the record
    released    the handler has released it
    accepted    a broker has confirmed the accept; the number is -1
    failed      an accept was not confirmed; the number is -1, the last word the error
    started     the process consumes; the record is all zeros

Of tasks, the topic is "-": a task does not know its record. Of a Spark query, the last
word of "handled" is the batch.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.chaos.clocks import monotonic_ns

__all__ = ["Entry", "Journal", "JournalTail", "read_journal"]


class Entry(NamedTuple):
    """One line; `seconds` are of CLOCK_MONOTONIC."""

    seconds: float
    kind: str
    number: int
    topic: str
    partition: int
    offset: int
    count: int
    error: str
    process: str


class Journal:
    """The journal that a process writes."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(
        self,
        kind: str,
        number: int = 0,
        topic: str = "-",
        partition: int = 0,
        offset: int = 0,
        count: int = 0,
    ) -> None:
        self.note_all(kind, [(number, topic, partition, offset, count)])

    def note_all(
        self,
        kind: str,
        records: Iterable[tuple[int, str, int, int, int]],
        error: str = "",
    ) -> None:
        now = monotonic_ns()
        tail = f" {error}\n" if error else "\n"
        lines = (f"{kind} {now} {n} {t} {p} {o} {c}{tail}" for n, t, p, o, c in records)
        os.write(self._file, "".join(lines).encode())


def read_journal(path: Path) -> Iterator[Entry]:
    """Return the entries of a process; its name is the file's."""
    return JournalTail(path).read()


class JournalTail:
    """Reads a journal that grows, each line once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def read(self) -> Iterator[Entry]:
        """Yield the entries that are complete since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self._at += len(new)
        for line in new.decode().splitlines():
            yield _entry(line, self._path.name)


def _entry(line: str, process: str) -> Entry:
    kind, nanoseconds, number, topic, partition, offset, count, *error = line.split()
    return Entry(
        int(nanoseconds) / 1e9,
        sys.intern(kind),
        int(number),
        sys.intern(topic),
        int(partition),
        int(offset),
        int(count),
        " ".join(error),
        process,
    )
