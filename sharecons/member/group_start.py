"""From the first connection of a consumer to the moment before it joins its group."""

from collections.abc import Awaitable, Callable, Sequence
from typing import final

from sharecons.member.group_setup import (
    GroupConfigs,
    OffsetReset,
    check_and_configure,
)
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection
from sharecons.protocol.messages import FetchSettings

__all__ = ["GroupStart"]


@final
class GroupStart:
    """Connects, and configures and checks the group.

    Args:
        settings: have the group.
        connect_timeout: seconds to connect to a first broker.
        request_timeout: seconds to wait for one response.

    Attributes:
        offset_reset: the value to set for the group.
        check: a worker's checks; what they raise ends the start.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: FetchSettings,
        offset_reset: OffsetReset,
        connect_timeout: float,
        request_timeout: float,
    ) -> None:
        self.offset_reset = offset_reset
        self.check: Callable[[GroupConfigs], Awaitable[None]] | None = None
        self.request_timeout = request_timeout
        self._cluster = cluster
        self._settings = settings
        self._connect_timeout = connect_timeout

    async def run(
        self, topics: Sequence[str], check_starting: Callable[[], None]
    ) -> tuple[Connection, int]:
        """Return a connection, and the delivery limit of the group.

        Args:
            topics: the subscription.
            check_starting: raises an error if the consumer was closed meanwhile.

        Raises:
            Error: as `Cluster.connect_any`, `check_and_configure` and `check`.
        """
        connection = await self._cluster.connect_any(
            timeout=self._connect_timeout, retry=True
        )
        try:
            configs = await check_and_configure(
                connection,
                self._cluster,
                self._settings,
                self.offset_reset,
                self.request_timeout,
            )
            if self.check is not None:
                await self.check(configs)
            if configs.offset_reset == "latest" and topics:
                await self._log_skipped(connection, topics, configs)
            check_starting()
        except BaseException:
            await connection.aclose()
            raise
        return connection, configs.delivery_limit

    async def _log_skipped(
        self, connection: Connection, topics: Sequence[str], configs: GroupConfigs
    ) -> None:
        # Consumers do not load the admin client's requests unless they need them.
        from sharecons.member.skipped_records import log_skipped_records

        await log_skipped_records(
            connection,
            self._cluster,
            self._settings.group_id,
            topics,
            self.request_timeout,
            is_chosen=configs.is_reset_chosen,
        )
