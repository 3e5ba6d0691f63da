"""Log lines about brokers: one when a broker is unreachable, one when it is back.

Theory of operation
-------------------
A broker's outage begins when a connection attempt fails, when a response is overdue, or
when a connection is lost and no response follows. It ends with a response, or when the
broker is not needed any more: another one is the leader, for example.

Requests that only this broker can serve must succeed themselves: a broker that responds
to heartbeats and holds every fetch is not back. They count for EXPIRY seconds, as they
can move to another broker.
"""

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from sharecons.errors import ConnectionFailedError
from sharecons.net.io.event_loop import Clock
from sharecons.net.problem_log import (
    REPEAT_INTERVAL,
    Problem,
    ProblemLog,
    ProblemTexts,
)

__all__ = ["Outages"]

OVERDUE: Final = 4.0
"""Seconds without a response, beyond the wait that the request allows."""

EXPIRY: Final = 60.0
"""Seconds after its last failure for which a request must succeed itself. Longer than
the 36 s from one overdue response to the next: the timeout, reconnecting, OVERDUE."""

LOST_DELAY: Final = 3.0
"""Seconds from a lost connection to the WARNING, if no response follows."""

UNUSED: Final = 90.0
"""Seconds without a request after which a broker is not needed any more."""

OWN_REQUESTS: Final = frozenset({"Heartbeat", "ShareFetch", "ShareAcknowledge"})
"""Requests that only one broker can serve."""

TEXTS: Final = ProblemTexts(
    begins="unreachable, retrying",
    lasts="still unreachable, retrying",
    ends="reachable again",
)


@dataclass(slots=True)
class _InFlight:
    """A request, or a connection attempt, without a response so far."""

    broker: str
    name: str
    overdue_at: float


class Outages:
    """Logs the outages of brokers.

    Args:
        log: a logger of `sharecons.log`.
    """

    def __init__(self, log: Any, clock: Clock) -> None:
        self._clock = clock
        self._problems = ProblemLog(log, TEXTS)
        self._log = log
        self._reconnect_logged_at: dict[str, float] = {}
        self._in_flight: dict[object, _InFlight] = {}
        self._failed: dict[Hashable, dict[str, float]] = {}

    @contextmanager
    def connecting(self, broker: str) -> Iterator[None]:
        """Watch an attempt to connect; the caller's exceptions pass."""
        attempt = object()
        self.on_sent(attempt, broker, "connecting", 0.0)
        try:
            yield
        except ConnectionFailedError as error:
            self._on_failure(broker, str(error))
            raise
        finally:
            del self._in_flight[attempt]

    def on_sent(
        self, connection: object, broker: str, request: str, max_wait: float
    ) -> None:
        """Watch a request.

        Args:
            request: its name.
            max_wait: seconds that the broker can wait before it responds.
        """
        overdue_at = self._clock() + max_wait + OVERDUE
        self._in_flight[connection] = _InFlight(broker, request, overdue_at)

    def on_response(self, connection: object) -> None:
        """Note the response to the request on a connection."""
        sent = self._in_flight.pop(connection, None)
        if sent is not None and sent.broker in self._failed:
            self._on_recovered(sent.broker, sent.name)

    def on_error(self, connection: object, error: BaseException) -> None:
        """Note that the request on a connection failed, or was cancelled."""
        sent = self._in_flight.pop(connection, None)
        if sent is not None and isinstance(error, ConnectionFailedError):
            self._on_failure(sent.broker, str(error), sent.name, delay=LOST_DELAY)

    def on_lost(self, broker: str, error: BaseException) -> None:
        """Note that a connection without a request in flight has ended."""
        self._on_failure(broker, str(error), delay=LOST_DELAY)

    def check(self) -> float:
        """Log overdue responses and unused brokers; return when to call this again."""
        now = self._clock()
        for broker in self._problems.end_quiet(now, UNUSED, "not needed any more"):
            del self._failed[broker]
        next_check = now + OVERDUE
        for sent in tuple(self._in_flight.values()):
            if sent.overdue_at <= now:
                reason = f"{sent.name}: no response for {OVERDUE:g} s"
                since = sent.overdue_at - OVERDUE
                self._on_failure(sent.broker, reason, sent.name, since=since)
                sent.overdue_at = now + OVERDUE
            next_check = min(next_check, sent.overdue_at)
        return next_check

    def _on_failure(
        self,
        broker: str,
        reason: str,
        request: str = "",
        *,
        delay: float = 0.0,
        since: float | None = None,
    ) -> None:
        now = self._clock()
        failed = self._failed.setdefault(broker, {})
        if request in OWN_REQUESTS:
            failed[request] = now
        self._problems.on_failure(
            broker, now, since=since, delay=delay, broker=broker, reason=reason
        )

    def _on_recovered(self, broker: str, request: str) -> None:
        now = self._clock()
        failed = self._failed[broker]
        failed.pop(request, None)
        if any(now - failed_at < EXPIRY for failed_at in failed.values()):
            return
        del self._failed[broker]
        problem = self._problems.on_success(broker, now)
        if problem is not None and problem.logged_at is None:
            self._log_reconnect(broker, problem, now)

    def _log_reconnect(self, broker: str, problem: Problem, now: float) -> None:
        """Log a short interruption, at most once a minute."""
        logged_at = self._reconnect_logged_at.get(broker, -math.inf)
        if now - logged_at >= REPEAT_INTERVAL:
            self._reconnect_logged_at[broker] = now
            seconds = round(now - problem.since, 1)
            self._log.info("connected again", **problem.fields, seconds=seconds)
