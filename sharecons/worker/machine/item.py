"""A record that a worker holds, and a call of its handler."""

import enum
import math
from typing import Any, final

from sharecons._record import TopicPartition
from sharecons.copies.dead_letter_headers import Origin
from sharecons.worker.machine.meters import TopicMeter
from sharecons.worker.machine.settings import DEFAULTS, HandlerSettings

__all__ = ["Call", "ItemState", "WorkItem"]


class ItemState(enum.Enum):
    """The state of a record that a worker has taken.

    READY records can start. BLOCKED records wait for an earlier one with their key.
    RUNNING records are in a call. WAITING records wait for their next attempt. COPYING
    records are written to another topic. ISOLATED records can start alone. DONE records
    are no longer held.
    """

    READY = enum.auto()
    BLOCKED = enum.auto()
    RUNNING = enum.auto()
    WAITING = enum.auto()
    COPYING = enum.auto()
    ISOLATED = enum.auto()
    DONE = enum.auto()


@final
class Call:
    """One call of a handler.

    Attributes:
        items: its records; once it runs, without the records that were settled before.
        queue: of its handler; the queue that has started the call sets it.
        is_running: the handler runs, even if the call was cancelled.
        began: when the handler was called, while it runs.
        without_outcome: how many of its records have no outcome yet, while it runs.
        was_interrupted: an exception was raised at an await of the handler: a
            cancellation, by the worker or by a time limit of the handler.
        slot: the shell keeps here what makes the call.
        middleware: the shell keeps here the call within middleware, if there is any.
        texts: the shell keeps here the texts of a failed call.
    """

    __slots__ = (
        "began",
        "is_running",
        "items",
        "middleware",
        "queue",
        "slot",
        "texts",
        "was_interrupted",
        "without_outcome",
    )

    queue: Any

    def __init__(self, items: "list[WorkItem]") -> None:
        self.items = items
        self.is_running = False
        self.began = math.inf
        self.without_outcome = 0
        self.was_interrupted = False
        self.slot: Any = None
        self.middleware: Any = None
        self.texts: Any = None

    def keep_running(self) -> None:
        """Remove the records that have another state before the call begins."""
        if any(item.state is not ItemState.RUNNING for item in self.items):
            self.items = [item for item in self.items if item.is_running]
        self.without_outcome = len(self.items)

    def end(self) -> None:
        """End the call; forget the items, which refer to it."""
        self.is_running = False
        self.middleware = None
        if self.texts is not None:
            self.texts.end()
        self.items = []


@final
class WorkItem:
    """A record that a worker holds.

    Attributes:
        record: as the broker delivered it, with bytes as key and value.
        size: bytes of its key, value and headers.
        settings: the settings of its handler.
        lane: its key, or None if other records never block it.
        attempt: the number of the present or next attempt; 1 is the first.
        due: when the next attempt can start.
        origin: the record that failed before, if this one is of a retry topic.
        argument: the record for the handler; deserialized before the first call.
        error: the exception of the last attempt.
        call: the last call.
        queue: the queue of its handler.
        held_since: when the worker took it.
        is_followed: the shell notes here that each failed attempt has a log line.
        lease_end: when the worker stops holding it. Infinity for a record with a lane
            that waits for its first call behind another one.
        topic_partition: its partition.
        meter: counts what becomes of it, for metrics; None without metrics.
    """

    __slots__ = (
        "argument",
        "attempt",
        "call",
        "due",
        "error",
        "held_since",
        "is_followed",
        "lane",
        "lease_end",
        "meter",
        "origin",
        "queue",
        "record",
        "settings",
        "size",
        "state",
        "topic_partition",
    )

    topic_partition: TopicPartition
    held_since: float
    queue: Any

    def __init__(
        self,
        record: Any,
        size: int,
        *,
        settings: HandlerSettings = DEFAULTS,
        lane: bytes | None = None,
        attempt: int = 1,
        due: float = -math.inf,
        origin: Origin | None = None,
        lease_end: float = math.inf,
        meter: TopicMeter | None = None,
    ) -> None:
        self.record = record
        self.size = size
        self.settings = settings
        self.lane = lane
        self.attempt = attempt
        self.due = due
        self.origin = origin
        self.lease_end = lease_end
        self.meter = meter
        self.argument = record
        self.error: Exception | None = None
        self.is_followed = False
        self.call: Call | None = None
        self.state = ItemState.READY

    @property
    def is_done(self) -> bool:
        """True if the worker no longer holds it."""
        return self.state is ItemState.DONE

    @property
    def is_running(self) -> bool:
        """True while its handler runs, and it has no outcome yet."""
        return self.state is ItemState.RUNNING

    @property
    def is_waiting(self) -> bool:
        """True while it waits for its next attempt."""
        return self.state is ItemState.WAITING

    @property
    def has_outcome(self) -> bool:
        """True if it has an outcome, which is being carried out or has been."""
        return self.state in (ItemState.COPYING, ItemState.DONE)
