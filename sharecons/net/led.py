"""One leader of ours: its machine, told of each answer, and what is asked after it.

No coroutine is here: this is what each answer passes through, and it is compiled.
"""

from collections.abc import Callable, Mapping
from typing import Any, final

from sharecons.metrics import Counters
from sharecons.net.bell import Bell
from sharecons.net.clock import Clock
from sharecons.net.following import Following, Later
from sharecons.protocol.happenings import Acquired, Happened
from sharecons.protocol.leader import Leader
from sharecons.protocol.leases import Lease
from sharecons.protocol.values import ShareFetch

__all__ = ["Led", "ring_all"]


@final
class Led:
    """A leader machine with its bell; see `Leaders` for what it calls.

    Attributes:
        machine, bell: what its task carries out, and is woken by.
    """

    def __init__(
        self,
        machine: Leader,
        bell: Bell,
        clock: Clock,
        counters: Counters,
        acquired: Callable[[Lease], None],
        reported: Callable[[], bool],
        request_timeout: float,
    ) -> None:
        self.machine = machine
        self.bell = bell
        self._clock = clock
        self._counters = counters
        self._acquired = acquired
        self._reported = reported
        self._request_timeout = request_timeout
        self._asked: Any = None

    def asks(self, request: Any) -> Following:
        """Give a request of the machine's as it is sent."""
        self._asked = request
        timeout = self._request_timeout
        if isinstance(request, ShareFetch):
            self._counters.add("fetch-total")
            timeout += request.max_wait
        return Following(request, timeout)

    def heard(self, answer: Any) -> Following | Later | None:
        """Tell the machine, hand over what came, and give what is asked next.

        Where more lies ready the next fetch leaves before what came is worked. Else
        the application runs first, and has asked for more when we look what is due.
        Our task sleeps on, unless there is more to tell than leases.
        """
        machine = self.machine
        machine.answered(self._asked, answer, self._clock())
        happened, machine.happened = machine.happened, []
        leases: list[Lease] = []
        others: list[Happened] = []
        for each in happened:
            if isinstance(each, Acquired):
                leases.append(each.lease)
            else:
                others.append(each)
        goes_on = not others and self._reported() and bool(machine.wanted)
        if machine.backlog and not goes_on:
            machine.happened = happened  # handed over when our task has sent it
            return None
        following = self._look() if machine.backlog else None
        machine.happened += others
        for lease in leases:
            self._acquired(lease)
        if machine.backlog or not goes_on:
            return following
        return Later(self._look)

    def _look(self) -> Following | None:
        request = self.machine.next_request(self._clock())
        return None if request is None else self.asks(request)


def ring_all(leaders: Mapping[int, Led]) -> None:
    """There may be something to fetch."""
    for led in leaders.values():
        led.bell.ring()
