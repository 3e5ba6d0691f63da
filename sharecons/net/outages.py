"""Log lines about brokers: one when a broker is unreachable, one when it is back."""

from typing import Any

from sharecons.errors import ConnectionFailedError, Error
from sharecons.protocol.messages import Endpoint

__all__ = ["Outages"]


class Outages:
    """Logs the start and the end of each broker's outage.

    An outage starts when a connection attempt fails, and ends when one succeeds.

    Args:
        log: a logger of `sharecons.log`.
    """

    def __init__(self, log: Any) -> None:
        self._log = log
        self._since: dict[Endpoint, float] = {}

    def on_failure(self, endpoint: Endpoint, error: Error, now: float) -> None:
        """Note a failed attempt; ignore errors that a retry cannot help."""
        if endpoint not in self._since and isinstance(error, ConnectionFailedError):
            self._since[endpoint] = now
            self._log.warning(
                "unreachable, retrying", broker=str(endpoint), reason=str(error)
            )

    def on_connected(self, endpoint: Endpoint, now: float) -> None:
        """Note a successful attempt."""
        since = self._since.pop(endpoint, None)
        if since is not None:
            seconds = round(now - since, 1)
            self._log.info("reachable again", broker=str(endpoint), seconds=seconds)
