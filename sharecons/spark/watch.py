"""What brokers tell of a query's group and topics, before it acquires and later.

All of it runs in the member's thread. What Spark's thread reads too, the ledger and the
goal, changes under the driver's condition.
"""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import anyio

from sharecons.admin.client import ShareGroupAdmin
from sharecons.errors import AuthorizationError, ConnectionFailedError, Error
from sharecons.log import get_logger
from sharecons.spark.acquirer import Joining
from sharecons.spark.errors import LedgerMismatchError, TopicMissingError
from sharecons.spark.group_lag import GroupLag, read_bounds, read_group_lag
from sharecons.spark.ledger import Ledger
from sharecons.spark.planning import AvailableNowTarget
from sharecons.spark.topics import TopicWatch

__all__ = ["GroupWatch"]

INTERVAL: Final = 5.0
START_PATIENCE: Final = 3.0
TOPIC_PATIENCE: Final = 10.0
"""How long a topic that no broker knows is asked for again: while Spark waits for the
query to start, and while it runs, where an error would end it."""

FINAL: Final = (AuthorizationError, LedgerMismatchError, TopicMissingError)
"""What ends a query that runs; brokers that cannot be asked do not."""

_log = get_logger(__name__)


class GroupWatch:
    """Looks at one query's group and topics, and keeps what came of it.

    Args:
        adopt: topics that are missing, or were made anew, are no error.
        changed: notified of changes.
        between_entries: keeps an entry from beginning meanwhile.

    Attributes:
        standing: how far the group is, as asked a few seconds ago at most.
        goal: what is to be reached, once `begin` has asked.
        extended_at: when partitions came up that the goal did not have before, on
            `time.monotonic()`'s clock.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        joining: Joining,
        ledger: Ledger,
        *,
        adopt: bool,
        changed: threading.Condition,
        between_entries: Callable[[], AbstractAsyncContextManager[object]],
    ) -> None:
        self.standing = GroupLag()
        self.goal: AvailableNowTarget | None = None
        self.extended_at = 0.0
        self._admin = admin
        self._group_id = joining.settings.group_id
        self._ledger = ledger
        self._adopt = adopt
        self._changed = changed
        self._between_entries = between_entries
        self._topics = TopicWatch(admin, joining.topics, fail_if_missing=not adopt)
        self._looking = anyio.Lock()

    async def begin(self) -> None:
        """See what is there, before anything is acquired of it.

        Raises:
            Error: a topic is missing, forbidden or made anew, or no broker tells.
        """
        topics = await self._topics.look(START_PATIENCE)
        self._ledger.agree(topics.ids, adopt=self._adopt)
        bounds = await read_bounds(self._admin, topics.led)
        self.standing = await self._ask_standing()
        self.goal = AvailableNowTarget(
            bounds,
            self.standing.offsets,
            self._ledger.end,
            leaderless=(topics.led | topics.leaderless) - bounds.keys(),
            topic_ids=topics.ids,
        )

    async def keep_looking(self, fail: Callable[[Error], None]) -> None:
        """Look every few seconds; end with `fail` called once the query has to end."""
        while True:
            await anyio.sleep(INTERVAL)
            try:
                await self.look()
            except FINAL as error:
                fail(error)
                return
            except Error as error:
                _log.debug("topics unknown", reason=str(error))

    async def look(self) -> bool:
        """See how far the group is, and whether its topics are still there.

        Returns:
            Whether the group lacks records of partitions that the goal did not have.

        Raises:
            Error: as `begin`.
        """
        async with self._looking:
            standing = await self._ask_standing()
            async with self._between_entries():
                self._note(standing)
            topics = await self._topics.look(TOPIC_PATIENCE)
            if not self._adopt:
                # With it, the ledger takes a new topic on with its first records.
                self._ledger.agree(topics.ids)
            assert self.goal is not None, "begun"
            with self._changed:
                self.goal.keep(topics.ids)
                unknown = self.goal.unknown(topics.led)
            bounds = await read_bounds(self._admin, unknown)
            with self._changed:
                there = topics.led | topics.leaderless
                lacking = self.goal.see(bounds, standing.offsets, there)
                if lacking:
                    self.extended_at = time.monotonic()
            return lacking

    def check_leaders(self) -> None:
        """Raise an error if partitions still have no leader.

        Raises:
            ConnectionFailedError: it names them.
        """
        assert self.goal is not None, "begun"
        if self.goal.leaderless:
            names = ", ".join(f"{t}-{n}" for t, n in sorted(self.goal.leaderless))
            raise ConnectionFailedError(
                f"{names}: no leader, so that its records could not be read; start the "
                "query again once its brokers run"
            )

    async def _ask_standing(self) -> GroupLag:
        return await read_group_lag(self._admin, self._group_id, self._ledger.topics)

    def _note(self, standing: GroupLag) -> None:
        self.standing = standing
        with self._changed:
            for (topic, partition), start in standing.starts.items():
                topic_id = self._ledger.topics.get(topic)
                same = topic_id == standing.topic_ids.get(topic)
                if topic_id is not None and same and start > 0:
                    self._ledger.passed(topic_id, partition, start)
            if self.goal is not None:
                self.goal.passed(standing.offsets)
            self._changed.notify_all()
