"""Probes of whether brokers respond, between and during collections.

The values of the last collection can be an hour old. A cheap request each second shows
when they are no longer current.
"""

from typing import Final, final

import anyio

from sharecons.admin import ShareGroupAdmin
from sharecons.errors import ConnectionFailedError, Error, RequestTimedOutError

__all__ = ["Reachability"]

INTERVAL: Final = 1.0
"""Seconds between two probes."""

PROBE_TIMEOUT: Final = 4.0
"""Seconds after which a probe has failed."""


@final
class Reachability:
    """Probes the cluster with DescribeCluster, which needs no permission.

    Args:
        admin: sends the requests.
    """

    def __init__(self, admin: ShareGroupAdmin) -> None:
        self._admin = admin

    async def responds(self) -> bool:
        """Probe once; return whether a broker responds."""
        return await self._probe() is None

    async def wait_until_lost(self) -> Error:
        """Probe until no broker responds; return the reason."""
        while True:
            await anyio.sleep(INTERVAL)
            error = await self._probe()
            if error is not None:
                return error

    async def wait_until_back(self) -> None:
        """Probe until a broker responds."""
        while True:
            await anyio.sleep(INTERVAL)
            if await self._probe() is None:
                return

    async def _probe(self) -> Error | None:
        with anyio.move_on_after(PROBE_TIMEOUT):
            try:
                await self._admin.describe_cluster()
            except (ConnectionFailedError, RequestTimedOutError) as error:
                return error
            except Error:
                pass  # An error of a broker is a response as well.
            return None
        return ConnectionFailedError(f"no broker responded within {PROBE_TIMEOUT:g} s")
