"""Notices handlers that call no further records although calls are free.

The records that they hold wait for their next attempt, or behind a record with their
key, and have all of the bytes, or all of the places, that there are. Releasing them
would use up their deliveries, so the worker takes no others until some are settled.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, final

from sharecons.net.io.event_loop import Clock
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.positions import item_text

__all__ = ["FULL_AFTER", "FullQueues"]

FULL_AFTER: Final = 10.0
"""Seconds after which a full handler is a problem."""

TEXTS: Final = ProblemTexts(
    begins="a handler receives no further records: the records that wait take up all "
    "that it can hold",
    lasts="a handler still receives no further records: the records that wait take up "
    "all that it can hold",
    ends="a handler receives further records again",
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
        self._log = ProblemLog(log, TEXTS, delay=FULL_AFTER)
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
            reason, advice = _reason(queue)
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


def _reason(queue: HandlerQueue) -> tuple[str, str]:
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
