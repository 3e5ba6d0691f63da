"""The connection of a member to its group coordinator, which can move.

Leaders have other connections, even if one broker is both: a broker serves one request
per connection at a time, so a waiting fetch would delay heartbeats.
"""

from functools import partial
from typing import Any

import anyio

from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.cluster import Cluster
from sharecons.net.connection import SharedConnection
from sharecons.protocol.group.heartbeat import Membership
from sharecons.protocol.partitions import Endpoint

__all__ = ["CoordinatorConnection"]


class CoordinatorConnection:
    """Sends heartbeats to the coordinator that `membership` knows.

    Args:
        request_timeout: seconds to connect, and to wait for one response.
    """

    def __init__(
        self,
        cluster: Cluster,
        membership: Membership,
        recorder: MetricsRecorder,
        request_timeout: float,
    ) -> None:
        self._cluster = cluster
        self._membership = membership
        self._recorder = recorder
        self._request_timeout = request_timeout
        self._endpoint: Endpoint | None = None
        self._connection: SharedConnection | None = None

    async def send(self, request: Any) -> Any:
        """Send a request; connect first if necessary, or if the coordinator has moved.

        Raises as `SharedConnection.send`.
        """
        connection = await self._connect()
        sent_at = anyio.current_time()
        self._recorder.last_heartbeat = sent_at
        response = await connection.send(request, self._request_timeout)
        now = anyio.current_time()
        self._recorder.on_heartbeat_response(request, response, sent_at, now)
        return response

    async def _connect(self) -> SharedConnection:
        endpoint = self._membership.coordinator
        assert endpoint is not None, "heartbeats follow a look-up"
        if self._connection is None or endpoint != self._endpoint:
            await self.aclose()
            self._endpoint = endpoint
            self._connection = SharedConnection(
                partial(self._cluster.connect, endpoint)
            )
        if not self._connection.is_open:
            await self._connection.open()
        return self._connection

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()
