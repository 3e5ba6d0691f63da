"""Log lines about brokers: one when a broker is unreachable, one when it is back.

Theory of operation
-------------------
A broker's outage begins when a connection attempt fails, when no bytes of an overdue
response arrive, or when a connection is lost and no response follows. It ends with a
response, or when the broker is not needed any more: another one is the leader, for
example.

Requests that only this broker can serve must succeed themselves: a broker that responds
to heartbeats and holds every fetch is not back. They count for EXPIRY seconds, as they
can move to another broker.
"""

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

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

LATE: Final = 1.0
"""A check that is later than this by seconds finds no response overdue: the process was
stopped, or the event loop blocked, and responses perhaps wait in the socket."""

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


class WatchedConnection(Protocol):
    """An open connection to a broker.

    Attributes:
        broker: its address.
        closed: it is not used any more.
        request: the name of the request in flight.
        response_due: when its response is expected; infinity if none is in flight.
        hint: ends the reason of an overdue response.
    """

    broker: str
    closed: bool
    request: str
    response_due: float
    hint: str

    def has_received_more(self) -> bool:
        """Return whether bytes of a response have arrived since the last call."""
        ...


class _Attempt:
    """An attempt to connect, as a connection without a response so far."""

    def __init__(self, broker: str, now: float, hint: str) -> None:
        self.broker = broker
        self.hint = hint
        self.closed = False
        self.request = "connecting"
        self.response_due = now

    def has_received_more(self) -> bool:
        return False


class Outages:
    """Logs the outages of brokers.

    Args:
        log: a logger of `sharecons.log`.

    Attributes:
        problems: the outages that last.
        failed: by broker, the requests that must succeed, and when they last failed.
    """

    def __init__(self, log: Any, clock: Clock) -> None:
        self.clock = clock
        self.failed: dict[Hashable, dict[str, float]] = {}
        self.problems = ProblemLog(log, TEXTS)
        self._log = log
        self._reconnect_logged_at: dict[str, float] = {}
        self._connections: set[WatchedConnection] = set()
        self._next_check = math.inf

    @contextmanager
    def connecting(self, broker: str, hint: str = "") -> Iterator[None]:
        """Watch an attempt to connect; the caller's exceptions pass."""
        attempt = _Attempt(broker, self.clock(), hint)
        self.watch(attempt)
        try:
            yield
        except ConnectionFailedError as error:
            self._on_failure(broker, str(error))
            raise
        finally:
            self._connections.discard(attempt)

    def watch(self, connection: WatchedConnection) -> None:
        """Look for overdue responses on a connection until it is closed."""
        self._connections.add(connection)

    def on_response(self, broker: str, request: str) -> None:
        """End the broker's outage; only needed while `failed` is not empty."""
        if broker in self.failed:
            self._on_recovered(broker, request)

    def on_error(self, broker: str, request: str, error: BaseException) -> None:
        """Begin an outage if the request failed because of its connection."""
        if isinstance(error, ConnectionFailedError):
            self._on_failure(broker, str(error), request, delay=LOST_DELAY)

    def on_lost(self, broker: str, error: BaseException) -> None:
        """Begin an outage: an idle connection has ended."""
        self._on_failure(broker, str(error), delay=LOST_DELAY)

    def check(self) -> float:
        """Log overdue responses and unused brokers; return when to call this again."""
        now = self.clock()
        for broker in self.problems.end_quiet(now, UNUSED, "not needed any more"):
            del self.failed[broker]
        self._connections = {each for each in self._connections if not each.closed}
        was_stopped = now - self._next_check > LATE
        next_check = now + OVERDUE
        for each in self._connections:
            if each.response_due <= now and (was_stopped or each.has_received_more()):
                each.response_due = now
            elif each.response_due + OVERDUE <= now:
                reason = f"{each.request}: no response for {OVERDUE:g} s{each.hint}"
                self._on_failure(
                    each.broker, reason, each.request, since=each.response_due
                )
            else:
                next_check = min(next_check, each.response_due + OVERDUE)
        self._next_check = next_check
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
        now = self.clock()
        failed = self.failed.setdefault(broker, {})
        if request in OWN_REQUESTS:
            failed[request] = now
        self.problems.on_failure(
            broker, now, since=since, delay=delay, broker=broker, reason=reason
        )

    def _on_recovered(self, broker: str, request: str) -> None:
        now = self.clock()
        failed = self.failed[broker]
        failed.pop(request, None)
        if any(now - failed_at < EXPIRY for failed_at in failed.values()):
            return
        del self.failed[broker]
        problem = self.problems.on_success(broker, now)
        if problem is not None and problem.logged_at is None:
            self._log_reconnect(broker, problem, now)

    def _log_reconnect(self, broker: str, problem: Problem, now: float) -> None:
        """Log a short interruption, at most once a minute."""
        logged_at = self._reconnect_logged_at.get(broker, -math.inf)
        if now - logged_at >= REPEAT_INTERVAL:
            self._reconnect_logged_at[broker] = now
            seconds = round(now - problem.since, 1)
            self._log.info("connected again", **problem.fields, seconds=seconds)
