"""One leader of ours: its machine, told of each answer, and what is asked after it.

No coroutine is here: this is what each answer passes through, and it is compiled.
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
    """A leader machine with its bell; see `Leaders` for what it calls.

    Attributes:
        machine, bell: what its task carries out, and is woken by.
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
        """Give the machine's first request on a connection, or after all were heard."""
        self._in_flight.clear()
        return self._next_request(request)

    def on_response(self, response: Any) -> NextRequest | Deferred | None:
        """Tell the machine, hand over what came, and give what is asked next.

        Where more lies ready the next fetch leaves before what came is worked. Else
        the application runs first, in this call if it can, and has asked for more when
        we look what is due. Our task sleeps on, unless there is more to tell than
        leases.
        """
        machine = self.machine
        machine.answered(self._in_flight.pop(0), response, self._clock())
        events, machine.events = machine.events, []
        leases: list[Lease] = []
        others: list[LeaderEvent] = []
        for each in events:
            if isinstance(each, Acquired):
                leases.append(each.lease)
            else:
                others.append(each)
        can_continue = not others and self._try_dispatch_acks() and bool(machine.wanted)
        fetch_first = machine.backlog and not self._in_flight
        if fetch_first and not can_continue:
            machine.events = events  # handed over when our task has sent it
            return None
        next_fetch = self._find_next() if fetch_first else None
        machine.events += others
        resume_now = can_continue and not fetch_first
        if leases and self._on_acquired(leases, resume_now):
            return self._find_next()
        return Deferred(self._find_next) if resume_now else next_fetch

    def _find_next(self) -> NextRequest | None:
        if self._in_flight:
            return None  # its answer says more
        request = self.machine.next_request(self._clock())
        return None if request is None else self._next_request(request)

    def _on_partial(self) -> NextRequest | None:
        """Ask for more while much comes: the broker turns to it when it has sent that.

        Unless there is something for our task to tell, which is when nothing is under
        way any more.
        """
        if self.machine.events or not self._try_dispatch_acks():
            return None
        request = self.machine.next_behind(self._clock())
        return None if request is None else self._next_request(request)

    def _next_request(self, request: Any) -> NextRequest:
        self._in_flight.append(request)
        timeout = self._request_timeout
        if not isinstance(request, ShareFetch):
            return NextRequest(request, timeout)
        self._counters.add("fetch-total")
        on_partial = self._on_partial if self.machine.backlog else None
        return NextRequest(request, timeout + request.max_wait, on_partial)


def wake_all(leaders: dict[int, LeaderIO]) -> None:
    """There may be something to fetch."""
    for leader in leaders.values():
        leader.wakeup.set()
