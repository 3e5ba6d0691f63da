"""Watches the lag of a query's group, and its topics, before and while it acquires.

Everything here runs in the member's thread. The ledger and the target, which Spark's
thread reads too, change under the lock of the driver's condition.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final
from uuid import UUID

import anyio

from sharecons.admin.client import ShareGroupAdmin
from sharecons.admin.log_bounds import log_bounds
from sharecons.errors import AuthorizationError, ConnectionFailedError, Error
from sharecons.log import get_logger
from sharecons.protocol.partitions import TopicId
from sharecons.spark.acquirer import MemberConfig
from sharecons.spark.errors import LedgerMismatchError, TopicMissingError
from sharecons.spark.group_lag import GroupLag, read_group_lag
from sharecons.spark.ledger import Ledger, describe_ranges
from sharecons.spark.planning import AvailableNowTarget
from sharecons.spark.topics import DescribedTopics, TopicWatch

__all__ = ["GroupWatch"]

REFRESH_INTERVAL: Final = 5.0
START_TOPIC_TIMEOUT: Final = 3.0
TOPIC_TIMEOUT: Final = 10.0
"""Seconds in which a missing topic is described again. START_TOPIC_TIMEOUT is for the
start of a query, for which Spark waits; later an error would end the query."""

FATAL_ERRORS: Final = (AuthorizationError, LedgerMismatchError, TopicMissingError)
"""Errors that end a running query; brokers that do not respond do not end it."""

_log = get_logger(__name__)


class GroupWatch:
    """Watches the group and the topics of one query.

    Args:
        allow_topic_loss: topics that are missing, deleted or recreated are no error.
        changed: notified of changes; its lock guards the ledger and the target.
        pause_writes: returns a context manager during which no write to the ledger
            starts.
        subscribe: called with the topics to read, when these change.

    Attributes:
        group_lag: the group's offsets, a few seconds old.
        target: the ends of the topics; None until `start` has read them.
        extended_at: when partitions were last added to the target, on the clock
            `time.monotonic()`.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        config: MemberConfig,
        ledger: Ledger,
        *,
        allow_topic_loss: bool,
        changed: threading.Condition,
        pause_writes: Callable[[], AbstractAsyncContextManager[object]],
        subscribe: Callable[[tuple[str, ...]], None],
    ) -> None:
        self.group_lag = GroupLag()
        self.target: AvailableNowTarget | None = None
        self.extended_at = 0.0
        self._admin = admin
        self._group_id = config.settings.fetch.group_id
        self._ledger = ledger
        self._allow_topic_loss = allow_topic_loss
        self._changed = changed
        self._pause_writes = pause_writes
        self._topics = TopicWatch(
            admin,
            config.topics,
            config.topic_pattern,
            fail_if_missing=not allow_topic_loss,
        )
        self._subscribe = subscribe
        self._subscribed = config.topics
        self._refresh_lock = anyio.Lock()

    async def start(self) -> None:
        """Describe the topics and set the target, before anything is acquired.

        Raises:
            Error: a topic is missing, forbidden or recreated, or no broker responds.
        """
        topics = await self._describe_topics(START_TOPIC_TIMEOUT)
        before = dict(self._ledger.topics)
        self._ledger.check_topics(topics.ids, allow_recreated=self._allow_topic_loss)
        self.report_recreated(before)
        bounds = (await log_bounds(self._admin, topics.with_leader)).found
        self.group_lag = await self._read_group_lag()
        self.target = AvailableNowTarget(
            bounds,
            self.group_lag.offsets,
            self._ledger.end,
            leaderless=(topics.with_leader | topics.leaderless) - bounds.keys(),
            topic_ids=topics.ids,
        )

    def report_recreated(self, before: Mapping[str, TopicId]) -> None:
        """Log the topics whose ids in the ledger have changed, and their lost records.

        Args:
            before: the ids before.
        """
        for topic, old in before.items():
            if self._ledger.topics[topic] != old:
                _log.warning(
                    "topic was deleted and created again; records of the old topic "
                    "that no batch has read are lost",
                    topic=topic,
                    group=self._group_id,
                    old_id=str(UUID(bytes=old)),
                    not_committed=describe_ranges(self._ledger.ranges_of(old)),
                    advice="produce these records again if they are needed",
                )

    async def keep_refreshing(self, fail: Callable[[Error], None]) -> None:
        """Refresh every few seconds; on a fatal error call `fail` and return."""
        while True:
            await anyio.sleep(REFRESH_INTERVAL)
            try:
                await self.refresh()
            except FATAL_ERRORS as error:
                fail(error)
                return
            except Error as error:
                _log.debug("topics unknown", reason=str(error))

    async def refresh(self) -> bool:
        """Read the group's lag, describe the topics, and add new partitions.

        Returns:
            Whether partitions were added to the target that hold records for the group.

        Raises:
            Error: a topic is missing, forbidden or recreated, or no broker responds.
        """
        async with self._refresh_lock:
            group_lag = await self._read_group_lag()
            async with self._pause_writes():
                self.apply_lag(group_lag)
            topics = await self._describe_topics(TOPIC_TIMEOUT)
            if not self._allow_topic_loss:
                # With it, the ledger accepts a recreated topic at its first records.
                self._ledger.check_topics(topics.ids)
            assert self.target is not None, "started"
            with self._changed:
                self.target.retain_topics(topics.ids)
                unknown = self.target.unknown_partitions(topics.with_leader)
            bounds = (await log_bounds(self._admin, unknown)).found
            if bounds:
                # The first one can be of a topic that was replaced since.
                group_lag = await self._read_group_lag()
            with self._changed:
                partitions = topics.with_leader | topics.leaderless
                is_extended = self.target.add_partitions(
                    bounds, group_lag.offsets, partitions
                )
                if is_extended:
                    self.extended_at = time.monotonic()
            return is_extended

    async def _describe_topics(self, timeout: float) -> DescribedTopics:
        topics = await self._topics.describe(timeout)
        if self._topics.names != self._subscribed:
            self._subscribed = self._topics.names
            _log.info("topics match", topics=", ".join(self._subscribed))
            self._subscribe(self._subscribed)
        return topics

    def check_leaders(self) -> None:
        """Check that all partitions of the target have had a leader.

        Raises:
            ConnectionFailedError: some had none; the message names them.
        """
        assert self.target is not None, "started"
        if self.target.leaderless:
            names = ", ".join(f"{t}-{n}" for t, n in sorted(self.target.leaderless))
            raise ConnectionFailedError(
                f"{names}: no leader, so its records could not be read; start the "
                "query again when the brokers of these partitions run"
            )

    async def _read_group_lag(self) -> GroupLag:
        return await read_group_lag(self._admin, self._group_id, self._ledger)

    def apply_lag(self, group_lag: GroupLag) -> None:
        """Apply the group's offsets to the ledger and the target.

        No write to the ledger must be running. Offsets of a topic that was recreated
        after they were read are ignored.
        """
        self.group_lag = group_lag
        with self._changed:
            for (topic, partition), start in group_lag.start_offsets.items():
                topic_id = self._ledger.topics.get(topic)
                same = topic_id == group_lag.topic_ids.get(topic)
                if topic_id is not None and same and start > 0:
                    self._ledger.set_start_offset(topic_id, partition, start)
            if self.target is not None:
                self.target.mark_progress(group_lag.offsets)
            self._changed.notify_all()
