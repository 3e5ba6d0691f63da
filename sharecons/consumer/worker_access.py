"""What a worker does with its consumer that applications cannot do."""

from collections.abc import Iterable

from sharecons.config import validation
from sharecons.consumer.deserializers import Deserializers
from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import ConfigurationError
from sharecons.net.cluster import Cluster

__all__ = ["WorkerAccess"]


class WorkerAccess:
    """Prepares a consumer for a worker, and drains it.

    The consumer then returns the raw bytes of records, in explicit mode: the worker
    deserializes and acknowledges them.

    Args:
        topics: the consumer also subscribes to these.

    Attributes:
        cluster: opens connections with the consumer's settings.
        deserializers: the consumer's.

    Raises:
        ConfigurationError: the consumer is started or has a worker already, or has one
            of the topics.
    """

    def __init__(
        self, consumer: ShareConsumer[object, object], topics: Iterable[str]
    ) -> None:
        if consumer._state != "new" or consumer._has_worker:
            raise ConfigurationError(
                "the worker needs a ShareConsumer of its own that is not started; it "
                "starts and closes the consumer itself"
            )
        consumer._has_worker = True
        consumer._topics = validation.check_topics((*consumer._topics, *topics))
        consumer._implicit = False
        self._consumer = consumer
        self.cluster: Cluster = consumer._cluster
        self.deserializers = consumer._deserializers
        consumer._deserializers = Deserializers(None, None)

    @property
    def has_failed(self) -> bool:
        """True if an error has ended the consumer."""
        return self._consumer._queue._fatal_error is not None

    async def drain(self) -> None:
        """Fetch no more; wait until all records are settled and acknowledged.

        Records that are already acquired can still be read meanwhile.
        """
        await self._consumer._member.drain()
