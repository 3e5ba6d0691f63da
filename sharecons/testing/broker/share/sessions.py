"""Share sessions: one for each member on each broker, as long as its connection."""

from collections.abc import Hashable

from sharecons.testing.broker.share.partitions import SharePartitions

__all__ = ["ShareSessions"]


class ShareSessions:
    def __init__(self, partitions: SharePartitions) -> None:
        self._partitions = partitions

    def connection_closed(self, connection: Hashable) -> None:
        """End the sessions of a connection, and release what they had acquired."""
        raise NotImplementedError
