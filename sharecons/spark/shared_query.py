"""One streaming query whose stream Spark reads several times, as in a self-join.

For `df.alias("a").join(df.alias("b"), ...)` Spark makes two readers of one `load()`,
each in a process of its own, and asks both in each trigger. They share one ledger and
one member: the first reader owns them, the others attach to it. All get the same
offsets, and nothing is trimmed before each of them has committed it.

Spark does not tell a reader which query it belongs to, and two queries on one `load()`
would be two readers as well. Their calls differ (seen with Spark 4.3):

- One query calls `prepareForTriggerAvailableNow` and `getDefaultReadLimit` of all its
  readers before it asks any for an offset. So readers attach until then, and not later.
- One query asks from one thread: its calls do not overlap, `partitions` excepted.
- One query asks each reader for the latest offset once in each trigger.

Calls that break these rules come from two queries. The owner then goes on alone.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from sharecons.spark.errors import LedgerTakenError
from sharecons.spark.ledger import AcquiredRange

__all__ = ["OWNER", "Query", "SharedQuery", "used_twice"]

OWNER: Final = 0
"""The number of the first reader."""

Offset = dict[str, Any]


class Query(Protocol):
    """What a reader asks; `sharecons.spark.stream.StreamQuery` is one."""

    def initial(self) -> Offset: ...

    def end_when_drained(self) -> None: ...

    def latest(
        self, start: Offset, *, most: int | None, least: int | None
    ) -> Offset: ...

    def report(self) -> Offset: ...

    def tasks(self, start: Offset, end: Offset) -> list[list[AcquiredRange]]: ...

    def commit(self, end: Offset) -> None: ...

    def stop_soon(self) -> None: ...

    def stop(self) -> None: ...


def used_twice(holder: str) -> LedgerTakenError:
    """Return the error of a reader that may not share the ledger."""
    return LedgerTakenError(
        f"{holder} already reads the stream of this load(): two queries use it, or a "
        "query that used it before has not ended yet; give each query a load(), a "
        "share group and a ledgerLocation of its own"
    )


@dataclass(slots=True)
class _Decision:
    """Where a batch ends, and who knows."""

    asked: tuple[Offset, int | None, int | None]
    end: Offset
    readers: set[int]


@final
class SharedQuery:
    """Answers for all readers of a query. Calls may come from several threads."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._lock = threading.Lock()
        self._is_open = True
        self._calls = 0
        self._is_split = False
        self._decision: _Decision | None = None
        # By reader: the triggers that asked it, and what it has committed.
        self._asked = [0]
        self._committed: list[Offset | None] = [None]

    def attach(self) -> int | None:
        """Add a reader and return its number; None if it is another query's."""
        with self._lock:
            if not self._is_open:
                return None
            self._asked.append(0)
            self._committed.append(None)
            return len(self._asked) - 1

    def close(self) -> None:
        """Let no reader attach any more."""
        with self._lock:
            self._is_open = False

    def initial(self, reader: int) -> Offset:
        with self._call(reader):
            return self._query.initial()

    def end_when_drained(self, reader: int) -> None:
        self._query.end_when_drained()

    def latest(
        self, reader: int, start: Offset, *, most: int | None, least: int | None
    ) -> Offset:
        """Return where a batch ends: for all readers at one offset, the same."""
        with self._call(reader):
            self._count(reader)
            asked = (start, most, least)
            known = self._decision
            if known and known.asked == asked and reader not in known.readers:
                known.readers.add(reader)
                return known.end
            end = self._query.latest(start, most=most, least=least)
            self._decision = _Decision(asked, end, {reader})
            return end

    def report(self, reader: int) -> Offset:
        with self._call(reader):
            return self._query.report()

    def tasks(
        self, reader: int, start: Offset, end: Offset
    ) -> list[list[AcquiredRange]]:
        with self._lock:
            self._admit(reader)
        return self._query.tasks(start, end)

    def commit(self, reader: int, end: Offset) -> None:
        """Trim what all readers have committed."""
        with self._call(reader):
            self._committed[reader] = end
            known = [each for each in self._committed if each is not None]
            if len(known) == len(self._committed):
                self._query.commit(min(known, key=lambda each: int(each["position"])))

    # Who asks.

    @contextmanager
    def _call(self, reader: int) -> Iterator[None]:
        with self._lock:
            if self._calls:
                self._split()
            self._admit(reader)
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1

    def _count(self, reader: int) -> None:
        with self._lock:
            self._asked[reader] += 1
            if self._asked[reader] > min(self._asked) + 1:
                self._split()
            self._admit(reader)

    def _admit(self, reader: int) -> None:
        self._is_open = False
        if self._is_split and reader != OWNER:
            raise used_twice("another process")

    def _split(self) -> None:
        """Go on without the readers that attached: they are another query's."""
        self._is_split = True
        del self._asked[1:], self._committed[1:]
