"""One streaming query whose stream Spark reads several times, as in a self-join.

For `df.alias("a").join(df.alias("b"), ...)` Spark creates two readers of one `load()`,
each in its own process, and calls both in each trigger. They share one ledger and one
member: the first reader owns them, the others attach to it. All get the same offsets,
and a position is trimmed once all of them have committed it.

Spark does not pass a reader the id of its query, and two queries on one `load()` also
have two readers. The calls of one query follow rules (seen with Spark 4.3):

- It calls `prepareForTriggerAvailableNow` and `getDefaultReadLimit` of all readers
  before it requests an offset from any. So readers attach until then, and not later.
- It calls from one thread: its calls do not overlap, except `partitions`.
- It requests the latest offset from each reader once per trigger.

Calls that break these rules come from two queries. The owner then continues alone.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from sharecons.spark.errors import LedgerTakenError
from sharecons.spark.ledger import AcquiredRange

__all__ = ["OWNER", "Query", "SharedQuery", "in_use_error"]

OWNER: Final = 0
"""The number of the first reader."""

Offset = dict[str, Any]


class Query(Protocol):
    """The calls of a reader; `sharecons.spark.stream.StreamQuery` implements them."""

    def initial_offset(self) -> Offset: ...

    def end_when_drained(self) -> None: ...

    def latest_offset(
        self, start: Offset, *, max_offsets: int | None, min_offsets: int | None
    ) -> Offset: ...

    def report_latest_offset(self) -> Offset: ...

    def plan_tasks(self, start: Offset, end: Offset) -> list[list[AcquiredRange]]: ...

    def commit(self, end: Offset) -> None: ...

    def request_stop(self) -> None: ...

    def stop(self) -> None: ...


def in_use_error(holder: str) -> LedgerTakenError:
    """Return the error for a reader that cannot share the ledger."""
    return LedgerTakenError(
        f"{holder} already reads the stream of this load(): two queries use it, or a "
        "query that used it before has not ended yet; give each query a load(), a "
        "share group and a ledgerLocation of its own"
    )


@dataclass(slots=True)
class _BatchEnd:
    """The end of a batch, and the readers that have received it."""

    request: tuple[Offset, int | None, int | None]
    end: Offset
    readers: set[int]


@final
class SharedQuery:
    """One query with several readers. The methods can be called from any thread."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._lock = threading.Lock()
        self._is_open = True
        self._calls = 0
        self._is_split = False
        self._decision: _BatchEnd | None = None
        # By reader: the number of its triggers, and the last offset it has committed.
        self._triggers = [0]
        self._committed: list[Offset | None] = [None]

    def attach(self) -> int | None:
        """Add a reader and return its number; None if it is of another query."""
        with self._lock:
            if not self._is_open:
                return None
            self._triggers.append(0)
            self._committed.append(None)
            return len(self._triggers) - 1

    def close(self) -> None:
        """Accept no more readers."""
        with self._lock:
            self._is_open = False

    def initial_offset(self, reader: int) -> Offset:
        with self._exclusive_call(reader):
            return self._query.initial_offset()

    def end_when_drained(self, reader: int) -> None:
        self._query.end_when_drained()

    def latest_offset(
        self,
        reader: int,
        start: Offset,
        *,
        max_offsets: int | None,
        min_offsets: int | None,
    ) -> Offset:
        """Return where a batch ends: the same for all readers at the same offset."""
        with self._exclusive_call(reader):
            self._count_trigger(reader)
            request = (start, max_offsets, min_offsets)
            decision = self._decision
            if (
                decision
                and decision.request == request
                and reader not in decision.readers
            ):
                decision.readers.add(reader)
                return decision.end
            end = self._query.latest_offset(
                start, max_offsets=max_offsets, min_offsets=min_offsets
            )
            self._decision = _BatchEnd(request, end, {reader})
            return end

    def report_latest_offset(self, reader: int) -> Offset:
        with self._exclusive_call(reader):
            return self._query.report_latest_offset()

    def plan_tasks(
        self, reader: int, start: Offset, end: Offset
    ) -> list[list[AcquiredRange]]:
        with self._lock:
            self._check_reader(reader)
        return self._query.plan_tasks(start, end)

    def commit(self, reader: int, end: Offset) -> None:
        """Trim the ledger up to the position that all readers have committed."""
        with self._exclusive_call(reader):
            self._committed[reader] = end
            offsets = [each for each in self._committed if each is not None]
            if len(offsets) == len(self._committed):
                self._query.commit(min(offsets, key=lambda each: int(each["position"])))

    # Checks of the readers.

    @contextmanager
    def _exclusive_call(self, reader: int) -> Iterator[None]:
        with self._lock:
            if self._calls:
                self._split()
            self._check_reader(reader)
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1

    def _count_trigger(self, reader: int) -> None:
        with self._lock:
            self._triggers[reader] += 1
            if self._triggers[reader] > min(self._triggers) + 1:
                self._split()
            self._check_reader(reader)

    def _check_reader(self, reader: int) -> None:
        self._is_open = False
        if self._is_split and reader != OWNER:
            raise in_use_error("another process")

    def _split(self) -> None:
        """Continue without the attached readers: they are of another query."""
        self._is_split = True
        del self._triggers[1:], self._committed[1:]
