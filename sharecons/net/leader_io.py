"""Handling the responses of one partition leader, and choosing its next request.

Every response passes through this module. It has no coroutine, so it is compiled.
"""

from collections.abc import Callable
from typing import Any, final

from sharecons.metrics.counters import Counters
from sharecons.net.io.clock import Clock
from sharecons.net.io.event import AutoResetEvent
from sharecons.net.io.pipeline import Deferred, NextRequest
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.fetch.events import Acquired, LeaderEvent
from sharecons.protocol.fetch.leader import Leader
from sharecons.protocol.messages import ShareFetch

__all__ = ["LeaderIO", "wake_all"]


@final
class LeaderIO:
    """The machine of one leader; see `LeaderTasks` for the callbacks.

    Attributes:
        machine: decides which requests to send.
        wakeup: wakes the task that runs the machine.
    """

    def __init__(
        self,
        machine: Leader,
        wakeup: AutoResetEvent,
        clock: Clock,
        counters: Counters,
        on_acquired: Callable[[list[Lease], bool], bool],
        try_dispatch_acks: Callable[[], bool],
        request_timeout: float,
    ) -> None:
        self.machine = machine
        self.wakeup = wakeup
        self._clock = clock
        self._counters = counters
        self._on_acquired = on_acquired
        self._try_dispatch_acks = try_dispatch_acks
        self._request_timeout = request_timeout
        self._in_flight: list[Any] = []

    def first_request(self, request: Any) -> NextRequest:
        """Return the first request to send while none is in flight."""
        self._in_flight.clear()
        return self._next_request(request)

    def on_response(self, response: Any) -> NextRequest | Deferred | None:
        """Pass a response to the machine and its leases on; return the next request.

        If the broker has more records ready, the next fetch is sent before the
        application processes these. Otherwise the application runs first, in this call
        if possible, so that its acknowledgements are in the next request. The leader's
        task is woken only for events other than leases.
        """
        machine = self.machine
        machine.on_response(self._in_flight.pop(0), response, self._clock())
        events, machine.events = machine.events, []
        leases: list[Lease] = []
        others: list[LeaderEvent] = []
        for each in events:
            if isinstance(each, Acquired):
                leases.append(each.lease)
            else:
                others.append(each)
        can_continue = (
            not others and self._try_dispatch_acks() and bool(machine.partitions)
        )
        fetch_first = machine.has_backlog and not self._in_flight
        if fetch_first and not can_continue:
            machine.events = events  # the task passes them on
            return None
        next_fetch = self._find_next() if fetch_first else None
        machine.events += others
        resume_now = can_continue and not fetch_first
        if leases and self._on_acquired(leases, resume_now):
            return self._find_next()
        return Deferred(self._find_next) if resume_now else next_fetch

    def _find_next(self) -> NextRequest | None:
        if self._in_flight:
            return None  # its response decides
        request = self.machine.next_request(self._clock())
        return None if request is None else self._next_request(request)

    def _on_partial(self) -> NextRequest | None:
        """Return the fetch to pipeline behind a large response that is arriving.

        The broker serves it after sending that response. Return None if events are
        pending: the task passes them on once nothing is in flight.
        """
        if self.machine.events or not self._try_dispatch_acks():
            return None
        request = self.machine.next_pipelined_request(self._clock())
        return None if request is None else self._next_request(request)

    def _next_request(self, request: Any) -> NextRequest:
        self._in_flight.append(request)
        timeout = self._request_timeout
        if not isinstance(request, ShareFetch):
            return NextRequest(request, timeout)
        self._counters.add("fetch-total")
        on_partial = self._on_partial if self.machine.has_backlog else None
        return NextRequest(request, timeout + request.max_wait, on_partial)


def wake_all(leaders: dict[int, LeaderIO]) -> None:
    """Wake all leaders: there may be records to fetch."""
    for leader in leaders.values():
        leader.wakeup.set()
