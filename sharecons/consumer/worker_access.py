"""Access of a worker to its consumer, beyond what applications can do."""

from collections.abc import Awaitable, Callable, Iterable

from sharecons.config import validation
from sharecons.consumer.deserializers import Deserializers
from sharecons.consumer.group_setup import GroupConfigs, OffsetReset
from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import ConfigurationError, Error
from sharecons.log import get_logger
from sharecons.net.cluster import Cluster
from sharecons.protocol.messages import DescribeGroupConfig

__all__ = ["WorkerAccess"]

_log = get_logger(__name__)


class WorkerAccess:
    """Prepares a consumer for a worker, and drains it.

    The consumer then returns the raw bytes of records, in explicit mode: the worker
    deserializes and acknowledges them. It sets the group's offset reset to earliest,
    unless the application or the group has a value.

    Args:
        topics: the consumer also subscribes to these.

    Attributes:
        topics: the consumer's subscription, with these.
        group_id: the share group.
        request_timeout: seconds to wait for one response.
        sets_earliest: the consumer sets the group's offset reset unless it has one.
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
        self.topics: tuple[str, ...] = consumer._topics
        self.group_id: str = consumer.group_id
        start = consumer._group_start
        self.request_timeout: float = start.request_timeout
        self.sets_earliest: bool = start.offset_reset.is_default
        if self.sets_earliest:
            start.offset_reset = OffsetReset("earliest", is_default=True)
        self._consumer = consumer
        self._max_records = consumer._settings.max_records
        self.cluster: Cluster = consumer._cluster
        self.deserializers = consumer._deserializers
        consumer._deserializers = Deserializers(None, None)

    def check_before_joining(
        self, check: Callable[[GroupConfigs], Awaitable[None]]
    ) -> None:
        """Let the consumer await `check` once it has connected, before it joins.

        What this raises ends the start of the consumer.
        """
        self._consumer._group_start.check = check

    @property
    def has_failed(self) -> bool:
        """True if an error has ended the consumer."""
        return self._consumer._queue._fatal_error is not None

    @property
    def buffered(self) -> int:
        """How many records the consumer has fetched and not returned."""
        consumer = self._consumer
        return consumer._queue.remaining() + consumer._member.prefetch.buffered

    @property
    def lock_duration(self) -> float:
        """For how many seconds records are locked; 0.0 if not known yet."""
        return self._consumer._member.prefetch.lock_duration

    def fetch_ahead(self) -> None:
        """Fetch records before they are requested, at the pace of `poll`."""
        prefetch = self._consumer._member.prefetch
        prefetch.set_max_records(self._max_records)
        self._set_suspended(False)

    def fetch_at_most(self, count: int) -> None:
        """Fetch up to `count` records once they are requested; none if it is 0."""
        if count:
            prefetch = self._consumer._member.prefetch
            prefetch.set_allowance(min(count, self._max_records))
        self._set_suspended(not count)

    def _set_suspended(self, suspended: bool) -> None:
        prefetch = self._consumer._member.prefetch
        if prefetch.suspended and not suspended:
            self._consumer._member.wake_leaders()
        prefetch.suspended = suspended

    async def read_group_config(self, name: str) -> str | None:
        """Return a config of the group; None if it is unknown or not readable."""
        consumer = self._consumer
        request = DescribeGroupConfig(group_id=consumer.group_id, name=name)
        try:
            response = await consumer._member.send_to_any(request)
        except Error as error:
            _log.debug("group config unknown", name=name, reason=str(error))
            return None
        value: str | None = None if response.error else response.value
        return value

    async def drain(self) -> None:
        """Fetch no more; wait until all records are settled and acknowledged.

        Records that are already acquired can still be read meanwhile.
        """
        await self._consumer._member.drain()
