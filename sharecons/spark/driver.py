"""The driver's side of a query: a member in a background thread, and its ledger.

Spark calls a stream's reader from one thread of a process that lives as long as the
query. The member runs in an event loop in a second thread. Both use the ledger, under
the lock of one condition, which is notified of every change.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio
from anyio.from_thread import BlockingPortal

from sharecons.admin.client import ShareGroupAdmin
from sharecons.errors import ClosedError, ConnectionFailedError, fresh
from sharecons.log import get_logger
from sharecons.net.io.event_loop import AutoResetEvent
from sharecons.spark.acquirer import Acquirer, MemberConfig
from sharecons.spark.ahead_limit import AheadLimit
from sharecons.spark.driver_tasks import (
    keep_trimming,
    report_end,
    watch_ownership,
    watch_parent,
)
from sharecons.spark.errors import LedgerError
from sharecons.spark.finished_mark import FinishedMark
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.ledger_store import LedgerStore
from sharecons.spark.planning import AvailableNowTarget
from sharecons.spark.watch import GroupWatch

__all__ = ["Driver"]

START_TIMEOUT: Final = 30.0
STOP_TIMEOUT: Final = 15.0
TOPICS_TIMEOUT: Final = 60.0
RESTART_DELAYS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between attempts to join while no broker can be reached; the last repeats."""

_log = get_logger(__name__)


class Driver:
    """The member and the ledger of one query; the methods are called by Spark's thread.

    Args:
        ahead: limits the offsets of the ledger that are in no batch.
        allow_topic_loss: topics that are missing, deleted or recreated are no error.
    """

    def __init__(
        self,
        config: MemberConfig,
        admin: ShareGroupAdmin,
        ledger: Ledger,
        store: LedgerStore,
        *,
        ahead: AheadLimit,
        allow_topic_loss: bool,
    ) -> None:
        self._admin = admin
        self._ledger = ledger
        self._store = store
        self._ahead = ahead
        self._allow_topic_loss = allow_topic_loss
        self._changed = threading.Condition()
        self._write_lock = threading.Lock()
        self._trim_until = 0
        self._finished = FinishedMark(store)
        self._trim_requested = AutoResetEvent()
        self._idle_since = time.monotonic()
        self._acquirer = Acquirer(config, self, self._notify)
        self._watch = GroupWatch(
            admin,
            config,
            ledger,
            allow_topic_loss=allow_topic_loss,
            changed=self._changed,
            pause_writes=self._acquirer.pause_writes,
            subscribe=self._acquirer.subscribe,
        )
        self._portal: BlockingPortal | None = None
        self._stopping = False
        self._stop_event: anyio.Event | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="sharecons")

    # The ledger, called by Spark's thread.

    @property
    def begin(self) -> int:
        with self._changed:
            return self._ledger.begin

    @property
    def end(self) -> int:
        with self._changed:
            return self._ledger.end

    def ranges_between(self, start: int, end: int) -> list[AcquiredRange]:
        with self._changed:
            return self._ledger.ranges_between(start, end)

    def mark_planned(self, position: int) -> None:
        """Record up to which position Spark has planned, and acquire more."""
        with self._changed:
            self._reset_idle_if_full()
            self._ahead.on_planned(position, time.monotonic())
        self._run_in_member_thread(self._acquirer.wake)

    def mark_finished(self, position: int) -> None:
        """Record up to which position batches have finished, and acquire more."""
        with self._changed:
            self._reset_idle_if_full()  # until now: this can make room
            self._ahead.on_finished(position, time.monotonic())
            self._finished.position = position
        self._run_in_member_thread(self._acquirer.wake)

    def trim(self, position: int) -> None:
        """Drop the positions before this one, as their batches are committed.

        This does not wait for the write. A killed driver's positions are dropped at the
        next commit.
        """
        with self._changed:
            self._trim_until = max(self._trim_until, position)
        self._run_in_member_thread(self._trim_requested.set)

    # `sharecons.spark.acquirer.LedgerWriter`, called by the member's thread.

    def write(self, ranges: Sequence[AcquiredRange]) -> int:
        with self._write_lock:
            new = self._select_new(ranges)
            if new:
                self._store.append(new)
            with self._changed:
                self._ledger.append(new)
                self._idle_since = time.monotonic()
                self.target.mark_acquired(ranges)
                self._changed.notify_all()
        return sum(each.size for each in new)

    def _select_new(self, ranges: Sequence[AcquiredRange]) -> list[AcquiredRange]:
        before = dict(self._ledger.topics)
        new = self._ledger.select_new(ranges, allow_recreated=self._allow_topic_loss)
        self._watch.report_recreated(before)
        return new

    @property
    def room(self) -> int:
        return self._ahead.room(self._ledger.end)

    @property
    def is_full(self) -> bool:
        """True while acquiring pauses until Spark has planned more batches."""
        return self.room <= 0

    @property
    def max_offsets_ahead(self) -> int:
        """How many offsets of the ledger can be in no batch now."""
        return self._ahead.size

    # The member.

    def start(self) -> None:
        """Start the member's thread, and wait until the topics are described.

        Raises:
            Error: no broker responds, or a topic is missing, forbidden or recreated.
        """
        self._thread.start()
        self._wait(lambda: self._watch.target is not None, START_TIMEOUT)
        self.raise_if_ended()
        if self._watch.target is None:
            raise ConnectionFailedError(
                f"no broker returned the topics' offsets within {START_TIMEOUT:g} s; "
                "check kafka.bootstrap.servers and the brokers"
            )

    @property
    def target(self) -> AvailableNowTarget:
        """The ends of the topics when the member joined."""
        assert self._watch.target is not None, "started"
        return self._watch.target

    def idle_since(self) -> float:
        """Return when (`time.monotonic()`) the ledger last grew, or was last full."""
        with self._changed:
            self._reset_idle_if_full()
            return max(self._idle_since, self._watch.extended_at)

    def _reset_idle_if_full(self) -> None:
        if self.is_full:
            self._idle_since = time.monotonic()

    def wait_beyond(self, position: int, timeout: float) -> int:
        """Wait up to `timeout` seconds for offsets beyond a position.

        Returns the end of the ledger.

        Raises:
            Error: the member has ended, and there is nothing beyond the position.
        """
        self._wait(lambda: self._ledger.end > position, timeout)
        if self._ledger.end <= position:
            self.raise_if_ended()
        return self.end

    def wait_for_offsets(self, position: int, count: int, timeout: float) -> int:
        """Wait as `wait_beyond`, for a number of offsets or for the target."""
        end = position + count
        self._wait(lambda: self._ledger.end >= end or self.target.is_reached, timeout)
        if self._ledger.end <= position:
            self.raise_if_ended()
        return self.end

    def can_finish(self) -> bool:
        """Describe the topics once more, and return whether the query can finish.

        It cannot if there are new partitions with records for the group; the target
        then includes them.

        Raises:
            Error: topics are missing, forbidden or recreated; partitions have no
                leader or could not be fetched; or no broker responds.
        """
        if self._refresh_topics():
            return False
        if not self.target.is_reached:
            self._watch.check_leaders()
            self._acquirer.check_can_fetch()
        return True

    def _refresh_topics(self) -> bool:
        portal = self._portal
        self.raise_if_ended()
        assert portal is not None, "the member runs"
        try:
            refreshed = portal.start_task_soon(self._watch.refresh)
        except RuntimeError:  # it has just ended
            self._wait(lambda: False, STOP_TIMEOUT)
            self.raise_if_ended()
            raise
        refreshed.add_done_callback(lambda _: self._notify())
        self._wait(refreshed.done, TOPICS_TIMEOUT)
        self.raise_if_ended()
        if not refreshed.done():
            raise ConnectionFailedError(
                f"no broker described the topics within {TOPICS_TIMEOUT:g} s; check "
                "the brokers and start the query again"
            )
        return refreshed.result()

    @property
    def has_ended(self) -> bool:
        """True once the member has ended; `raise_if_ended` raises the reason."""
        return self._stopping or self._error is not None

    def raise_if_ended(self) -> None:
        """Raise the error that ended the member, if it has ended.

        Raises:
            Error: the member failed.
            ClosedError: `stop` or `request_stop` was called.
        """
        if self._error is not None:
            raise fresh(self._error)
        if self._stopping:
            raise ClosedError("the source was stopped; start the query again")

    def stats(self) -> Mapping[str, int]:
        """Return the counts of the member, and the records that are not processed.

        Each of these is in the `lag` of the group (-1 if unknown), or in the `backlog`:
        the offsets of the ledger that no batch has finished.
        """
        with self._changed:
            return {
                **self._acquirer.snapshot(),
                "lag": self._watch.group_lag.lag_at(self._ledger.end),
                "backlog": self._ledger.end - self._ahead.finished_until,
            }

    def request_stop(self) -> None:
        """Make the member accept its records and leave the group; does not wait."""
        self._mark_stopping()
        self._run_in_member_thread(self._stop_now)

    def leave_group(self) -> None:
        """Call `request_stop` and wait for the member's end; can be repeated."""
        self.request_stop()
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT)

    def stop(self) -> None:
        """Leave the group and unlock the ledger; can be repeated."""
        self.leave_group()
        with suppress(LedgerError):  # another driver has the ledger
            self._trim()
            self._finished.write()
        self._store.close()

    # In the member's thread.

    def _run(self) -> None:
        try:
            anyio.run(self._main)
        except BaseException as error:  # noqa: BLE001 (raised in Spark's thread)
            self._error = error
        finally:
            self._portal = None
            self._notify()

    async def _main(self) -> None:
        self._stop_event = anyio.Event()
        async with BlockingPortal() as portal, self._admin:
            self._portal = portal
            try:
                await self._watch.start()
                self._notify()
                async with anyio.create_task_group() as tasks:
                    fail = self._acquirer.fail
                    tasks.start_soon(self._watch.keep_refreshing, fail)
                    tasks.start_soon(watch_ownership, self._store, fail)
                    trims = self._trim, self._trim_requested
                    tasks.start_soon(keep_trimming, self._store, *trims, fail)
                    tasks.start_soon(self._finished.keep_writing)
                    tasks.start_soon(watch_parent, self._stop_now)
                    try:
                        await self._keep_acquiring()
                    finally:
                        tasks.cancel_scope.cancel()
            except Exception as error:  # noqa: BLE001 (raised in Spark's thread)
                finished = self._ahead.finished_until
                self._error = report_end(error, self._ledger, finished)

    async def _keep_acquiring(self) -> None:
        """Run the member, and join again after connections have failed."""
        attempt = 0
        while not self._stopping:
            try:
                await self._acquirer.run()
                return
            except ConnectionFailedError as error:
                self._acquirer.last_error = error
                delay = RESTART_DELAYS[min(attempt, len(RESTART_DELAYS) - 1)]
                _log.warning("cannot join", reason=str(error), again_in=delay)
            attempt += 1
            assert self._stop_event is not None, "running"
            with anyio.move_on_after(delay):
                await self._stop_event.wait()

    def _trim(self) -> None:
        with self._write_lock:
            with self._changed:
                if self._trim_until <= self._ledger.begin:
                    return
                self._ledger.trim(self._trim_until)
            self._store.trim(self._ledger)

    def _mark_stopping(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _stop_now(self) -> None:
        self._mark_stopping()
        if self._stop_event is not None:
            self._stop_event.set()
        self._acquirer.stop()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _run_in_member_thread(self, action: Callable[[], None]) -> None:
        """Call a function in the member's thread, if that still runs."""
        portal = self._portal
        if portal is None:
            return
        with suppress(RuntimeError):  # it has just ended
            portal.start_task_soon(action)

    def _wait(self, condition: Callable[[], bool], timeout: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self.has_ended, timeout)
