"""Notices handlers that stand still: full of waiting records, or in calls without end.

The records that a handler holds wait for their next attempt, or behind a record with
their key, and have all of the bytes, or all of the places, that there are. Releasing
them would use up their deliveries, so the worker takes no others until some are
settled.

A call is long once it has run for `stuck_after` seconds, or without that for longer
than a lock lasts. One long call is no problem without `stuck_after`. It is one if no
other call can start before a long one ends.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, final

from sharecons.error_text import repr_of
from sharecons.net.io.event_loop import Clock
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.item import Call
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.positions import item_text, items_text
from sharecons.worker.routes import Routes

__all__ = ["FULL_AFTER", "FullQueues", "LongCalls"]

FULL_AFTER: Final = 10.0
"""Seconds after which a full handler is a problem."""

FULL: Final = ProblemTexts(
    begins="a handler receives no further records: the records that wait take up all "
    "that it can hold",
    lasts="a handler still receives no further records: the records that wait take up "
    "all that it can hold",
    ends="a handler receives further records again",
)

LONG: Final = ProblemTexts(
    begins="calls of a handler do not end",
    lasts="calls of a handler still do not end",
    ends="calls of a handler end again",
)


@final
class FullQueues:
    """Logs the problem, and returns it as conditions.

    Args:
        name_of: returns the name of a handler.
    """

    def __init__(
        self, log: Any, clock: Clock, name_of: Callable[[HandlerSettings], str]
    ) -> None:
        self._clock = clock
        self._name_of = name_of
        self._log = ProblemLog(log, FULL, delay=FULL_AFTER)
        self._since: dict[HandlerQueue, float] = {}

    def look(self, queues: Iterable[HandlerQueue]) -> dict[str, str]:
        """Return texts by condition; call this once a second."""
        now = self._clock()
        found: dict[str, str] = {}
        for queue in queues:
            if not queue.is_full or queue.is_saturated or queue.ready_count(now):
                if self._since.pop(queue, None) is not None:
                    self._log.on_success(queue, now)
                continue
            since = self._since.setdefault(queue, now)
            reason, advice = _why_full(queue)
            name = self._name_of(queue.settings)
            self._log.on_failure(
                queue,
                now,
                handler=name,
                records=queue.held_count,
                reason=reason,
                advice=advice,
            )
            if now - since >= FULL_AFTER:
                condition = "full-memory" if queue.has_all_bytes else "hot-key"
                found.setdefault(
                    condition,
                    f"handler {name} receives no further records for "
                    f"{now - since:.0f} s: {reason}; {advice}",
                )
        return found


def _why_full(queue: HandlerQueue) -> tuple[str, str]:
    """Return why a handler is full, and what to do."""
    waits: list[str] = []
    if queue.waiting_count:
        waits.append(f"{queue.waiting_count} records wait for their next attempt")
    longest = queue.first_of_longest_lane()
    if longest is not None:
        first, count = longest
        waits.append(
            f"{queue.blocked_count} records wait behind another one of their key, "
            f"{count} of them behind {item_text(first)}"
        )
    reason = ", and ".join(waits)
    if not queue.has_all_bytes:
        return reason, "make its handler quicker, or use more keys"
    advice = "raise max_held_bytes"
    if not queue.settings.retry_topics and not queue.settings.key_order:
        advice += ", or pass retry_topics, in which records can wait"
    return f"{reason}; all have {queue.held_bytes} bytes of {queue.max_bytes}", advice


class _LongCall(NamedTuple):
    """A call of a handler that has not ended.

    Attributes:
        seconds: since it began.
        handler: its name.
        argument: the record, or the records, as text.
        is_abandoned: it was cancelled, and goes on in its thread.
        queue: of its handler.
    """

    seconds: float
    handler: str
    argument: str
    is_abandoned: bool
    queue: HandlerQueue


class _Problem(NamedTuple):
    """A problem with long calls.

    Attributes:
        text: for a condition: the handler, its record, and the reason.
        reason: for a log line, which has the handler and the record in fields.
    """

    longest: _LongCall
    text: str
    reason: str
    advice: str


@final
class LongCalls:
    """Logs the problem, and returns it as conditions.

    Args:
        stuck_after: see `HealthPolicy`.
        lock_duration: returns how long a lock lasts, in seconds; None if unknown.
        concurrency: of the worker.
    """

    def __init__(
        self,
        log: Any,
        clock: Clock,
        routes: Routes,
        scheduler: Scheduler,
        *,
        stuck_after: float | None,
        lock_duration: Callable[[], float | None],
        concurrency: int,
    ) -> None:
        self._clock = clock
        self._routes = routes
        self._scheduler = scheduler
        self._stuck_after = stuck_after
        self._lock_duration = lock_duration
        self._concurrency = concurrency
        self._log = ProblemLog(log, LONG)
        self._has_problem = False

    def look(self, running: Iterable[Call]) -> dict[str, str]:
        """Return texts by condition; call this once a second.

        Args:
            running: the calls that have not ended, even if they were cancelled.
        """
        now, lock, limit = self._clock(), self._lock_duration(), self._stuck_after
        if limit is not None:
            name, quiet = "stuck-handler", 0.0
            calls = tuple(self._longer_than(limit, now, running))
            problem = _stuck(calls, limit) if calls else None
        elif lock is not None:
            # Calls that start now are long after another lock: that is no end.
            name, quiet = "busy-handlers", 2 * lock
            calls = tuple(self._longer_than(lock, now, running))
            problem = self._busy(calls, lock, now) if calls else None
        else:
            return {}
        if problem is None:
            if self._has_problem and self._log.end_quiet(now, quiet):
                self._has_problem = False
            return {}
        self._has_problem = True
        longest, text, reason, advice = problem
        self._log.on_failure(
            name,
            now,
            handler=longest.handler,
            record=longest.argument,
            reason=reason,
            advice=advice,
        )
        return {name: f"{text}; {advice}"}

    def _longer_than(
        self, limit: float, now: float, running: Iterable[Call]
    ) -> Iterator[_LongCall]:
        for call in running:
            if call.began < now - limit:
                name = self._routes.name_of(call.queue.settings)
                text = items_text(call.items)
                yield _LongCall(now - call.began, name, text, False, call.queue)
        for route in self._routes.routes:
            for thread in route.call.threads.abandoned if route.call.threads else ():
                if thread.began < now - limit:
                    queue = self._scheduler.queue_of(route.settings)
                    text = repr_of(thread.argument)
                    yield _LongCall(now - thread.began, route.name, text, True, queue)

    def _busy(
        self, calls: Sequence[_LongCall], lock: float, now: float
    ) -> _Problem | None:
        longest = max(calls, key=lambda call: call.seconds)
        queue = longest.queue
        same = [call for call in calls if call.queue is queue]
        effect = "no further record is processed until one ends"
        if len(same) < queue.concurrency:
            if len(calls) >= self._concurrency:
                same = list(calls)
            elif _has_only_blocked(queue, same, now):
                effect = (
                    f"all other {queue.blocked_count} records that it holds wait "
                    "behind these for their keys"
                )
            else:
                return None
        number = len(same)
        which = "the only call has" if number == 1 else f"all {number} calls have"
        which = f"{which} run for longer than a lock lasts ({lock:g} s)"
        text = (
            f"{which}, handler {longest.handler} for {longest.seconds:.0f} s, with "
            f"{longest.argument}; {effect}"
        )
        advice = (
            "look what they wait for, and give them a timeout; if they are meant to "
            "take that long, set stuck_after (--stuck-after) above the longest"
        )
        return _Problem(longest, text, f"{which}; {effect}", advice)


def _has_only_blocked(
    queue: HandlerQueue, calls: Sequence[_LongCall], now: float
) -> bool:
    """Return whether all records that do not run wait for the keys of these calls."""
    running = sum(not call.is_abandoned for call in calls)
    others = queue.ready_count(now) + queue.waiting_count + queue.copying
    return bool(queue.blocked_count) and running == queue.calls and not others


def _stuck(calls: Sequence[_LongCall], limit: float) -> _Problem:
    longest = max(calls, key=lambda call: call.seconds)
    place = ", in a thread that was cancelled" if longest.is_abandoned else ""
    more = f"; {len(calls) - 1} more are stuck" if len(calls) > 1 else ""
    text = (
        f"handler {longest.handler} has run for {longest.seconds:.0f} s, more than "
        f"stuck_after={limit:g}, with {longest.argument}{place}{more}"
    )
    reason = f"it has run for more than stuck_after={limit:g} s{place}{more}"
    return _Problem(longest, text, reason, "give what it waits for a timeout")
