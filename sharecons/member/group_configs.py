"""The configs of a group, which can change while its members run.

All parts of a consumer and of its worker share one reader. It reads once a minute, and
before a claim that depends on a config: a warning that records are archived, for
example. So a process sends each request once, and all parts use the same values.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, final

import anyio
from anyio.abc import TaskGroup

from sharecons.config.validation import whole_number
from sharecons.errors import Error
from sharecons.log import get_logger
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, running_clock
from sharecons.protocol.codes import code_name
from sharecons.protocol.group.config_messages import (
    DescribeGroupConfigs,
    DescribeGroupConfigsResponse,
)

__all__ = ["GroupConfigReader"]

DELIVERIES: Final = "share.delivery.count.limit"
RENEWALS: Final = "share.renew.acknowledge.enable"
WINDOW: Final = "share.partition.max.record.locks"

INTERVAL: Final = 60.0
"""Seconds between two readings without a claim."""

CLAIM_INTERVAL: Final = 1.0
"""Seconds between two readings with claims."""

CONFIRM_TIMEOUT: Final = 0.2
"""Seconds that the end of a consumer waits for a reading."""

Send = Callable[[Any], Awaitable[Any]]

_log = get_logger(__name__)


@final
class GroupConfigReader:
    """Reads the configs of one group that its members depend on.

    A config that cannot be read keeps its value: an older broker does not know it, or
    the client has no right to read it.

    Attributes:
        delivery_limit: how often the group delivers a record; 0 if it is not known.
        renews: whether the group allows renewals; None if it is not known.
        window: records that a partition has in flight at most; 0 if not known.
    """

    def __init__(self, group_id: str, delivery_limit: int = 0) -> None:
        self.delivery_limit = delivery_limit
        self.renews: bool | None = None
        self.window = 0
        self._group_id = group_id
        self._send: Send | None = None
        self._began_at = -FOREVER
        self._lock = anyio.Lock()
        self._wakeup = AutoResetEvent()
        self._listeners: list[Callable[[], object]] = []
        self._claims: list[Callable[[], object]] = []

    def subscribe(self, listener: Callable[[], object]) -> None:
        """Call a function after each reading, before the claims."""
        self._listeners.append(listener)

    def claim(self, claim: Callable[[], object]) -> None:
        """Call a function once after the next reading; now if there is none."""
        self._claims.append(claim)
        if self._send is None:
            self._settle_claims()
        else:
            self._wakeup.set()

    def start(self, tasks: TaskGroup, send: Send) -> None:
        """Read the configs in this task group, and settle all claims at its end.

        Args:
            send: sends a request to any broker.
        """
        self._send = send
        tasks.start_soon(self._run)

    async def _run(self) -> None:
        clock = running_clock()
        read_at = clock()
        try:
            while True:
                interval = CLAIM_INTERVAL if self._claims else INTERVAL
                if clock() < read_at + interval:
                    await self._wakeup.wait_until(read_at + interval)
                    continue
                read_at = clock()
                await self.read()
        finally:
            self._send = None
            self._settle_claims()

    async def read(self) -> None:
        """Read the configs; concurrent calls share a reading that begins after them."""
        called_at = anyio.current_time()
        async with self._lock:
            # A reading that began before the call can have missed a change.
            if self._send is None or self._began_at > called_at:
                return
            self._began_at = anyio.current_time()
            await self._read(self._send)

    async def confirm(self) -> None:
        """Wait for the reading that claims wait for, at most CONFIRM_TIMEOUT seconds.

        All claims are settled then.
        """
        if self._claims:
            with anyio.move_on_after(CONFIRM_TIMEOUT):
                await self.read()
        self._settle_claims()

    async def _read(self, send: Send) -> None:
        names = DELIVERIES, RENEWALS, WINDOW
        request = DescribeGroupConfigs(group_id=self._group_id, names=names)
        try:
            response: DescribeGroupConfigsResponse = await send(request)
        except Error as error:
            self._log_unknown(str(error))
        else:
            if response.error:
                self._log_unknown(response.message or code_name(response.error))
            else:
                self._set(response)
        self._settle_claims()

    def _set(self, response: DescribeGroupConfigsResponse) -> None:
        values = response.values
        self.delivery_limit = _number(values.get(DELIVERIES)) or self.delivery_limit
        self.window = _number(values.get(WINDOW)) or self.window
        renews = values.get(RENEWALS)
        self.renews = self.renews if renews is None else renews == "true"
        for listener in self._listeners:
            listener()

    def _log_unknown(self, reason: str) -> None:
        _log.debug("group configs unknown", group=self._group_id, reason=reason)

    def _settle_claims(self) -> None:
        claims, self._claims = self._claims, []
        for claim in claims:
            claim()


def _number(text: str | None) -> int:
    return max(0, whole_number(text) or 0)
