"""The driver's side of a query: a member in the background, and the ledger it fills.

Spark calls a stream's reader from one thread of one process, which lives as long as
the query runs; the member has an event loop in a thread beside it. What both touch is
the ledger, under one lock; what either waits for is told by one condition.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio
from anyio.from_thread import BlockingPortal
from anyio.to_thread import run_sync

from sharecons.admin.client import ShareGroupAdmin
from sharecons.errors import ClosedError, ConnectionFailedError, fresh
from sharecons.log import get_logger
from sharecons.net.cluster import Cluster
from sharecons.net.io.event import AutoResetEvent
from sharecons.net.io.wakeup import FOREVER
from sharecons.spark.acquirer import Acquirer, Joining
from sharecons.spark.errors import LedgerError, LedgerTakenError
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.ledger_store import LedgerStore
from sharecons.spark.planning import AvailableNowTarget
from sharecons.spark.watch import GroupWatch

__all__ = ["Driver"]

START_TIMEOUT: Final = 30.0
STOP_TIMEOUT: Final = 15.0
LEDGER_INTERVAL: Final = 5.0
PARENT_INTERVAL: Final = 1.0
LOOK_TIMEOUT: Final = 60.0
RESTART_DELAYS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Between attempts to join while no broker can be reached; the last one goes on."""

_log = get_logger(__name__)


class Driver:
    """One query's member and ledger, for one thread of Spark's."""

    def __init__(
        self,
        joining: Joining,
        cluster: Cluster,
        admin: ShareGroupAdmin,
        ledger: Ledger,
        keeper: LedgerStore,
        *,
        most_ahead: int,
        adopt: bool,
    ) -> None:
        self._admin = admin
        self._ledger = ledger
        self._keeper = keeper
        self._most_ahead = most_ahead
        self._adopt = adopt
        self._planned = ledger.end
        self._changed = threading.Condition()
        self._entering = threading.Lock()
        self._trimmed = AutoResetEvent()
        self._idle_since = time.monotonic()
        self._acquirer = Acquirer(joining, cluster, self, self._told)
        self._watch = GroupWatch(
            admin,
            joining,
            ledger,
            adopt=adopt,
            changed=self._changed,
            between_entries=self._acquirer.between_entries,
        )
        self._portal: BlockingPortal | None = None
        self._stopping = False
        self._stop: anyio.Event | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="sharecons")

    # The ledger, for Spark's thread.

    @property
    def begin(self) -> int:
        with self._changed:
            return self._ledger.begin

    @property
    def end(self) -> int:
        with self._changed:
            return self._ledger.end

    def between(self, start: int, end: int) -> list[AcquiredRange]:
        with self._changed:
            return self._ledger.between(start, end)

    def planned(self, position: int) -> None:
        """Spark has planned up to here: what stands ahead of it may grow again."""
        with self._changed:
            self._excuse()
            self._planned = max(self._planned, position)
        self._wake()

    def trim(self, position: int) -> None:
        """Forget what is committed."""
        with self._entering:
            with self._changed:
                self._ledger.trim(position)
            self._keeper.trim(self._ledger)
        self._call(self._trimmed.set)

    # The book, for the member's thread (`sharecons.spark.acquirer.Book`).

    def enter(self, taken: Sequence[AcquiredRange]) -> int:
        with self._entering:
            new = self._new(taken)
            if new:
                self._keeper.append(new)
            with self._changed:
                self._ledger.append(new)
                self._idle_since = time.monotonic()
                self.goal.entered(taken)
                self._changed.notify_all()
        return sum(each.size for each in new)

    def _new(self, taken: Sequence[AcquiredRange]) -> list[AcquiredRange]:
        before = dict(self._ledger.topics)
        new = self._ledger.new(taken, adopt=self._adopt)
        for topic, topic_id in self._ledger.topics.items():
            if before.get(topic, topic_id) != topic_id:
                _log.warning(
                    "topic was deleted and created again; what was not read of the old "
                    "one is lost",
                    topic=topic,
                )
        return new

    @property
    def full(self) -> bool:
        return self._ledger.end - self._planned >= self._most_ahead

    # The member.

    def start(self) -> None:
        """Join the group, in the background; wait until the cluster has answered.

        Raises:
            Error: no broker answers, or a topic was made anew.
        """
        self._thread.start()
        self._wait(lambda: self._watch.goal is not None, START_TIMEOUT)
        self.check()
        if self._watch.goal is None:
            raise ConnectionFailedError(
                f"no broker told what the topics hold within {START_TIMEOUT:g} s"
            )

    @property
    def goal(self) -> AvailableNowTarget:
        """What the topics held when the member joined."""
        assert self._watch.goal is not None, "started"
        return self._watch.goal

    def idle_since(self) -> float:
        """Since when nothing came that could have, on `time.monotonic()`'s clock."""
        with self._changed:
            self._excuse()
            return max(self._idle_since, self._watch.extended_at)

    def _excuse(self) -> None:
        """Not count as idle what passed while the ledger had no room for more."""
        if self.full:
            self._idle_since = time.monotonic()

    def wait_beyond(self, position: int, timeout: float) -> int:
        """Wait until the ledger ends behind a position; gives where it ends then.

        Raises:
            Error: what ended the member, once what it had entered is handed out.
        """
        self._wait(lambda: self._ledger.end > position, timeout)
        if self._ledger.end <= position:
            self.check()
        return self.end

    def gather(self, position: int, size: int, timeout: float) -> int:
        """Wait for so many offsets, or the goal; gives where the ledger ends then.

        Raises:
            Error: as `wait_beyond`.
        """
        end = position + size
        self._wait(lambda: self._ledger.end >= end or self.goal.reached, timeout)
        if self._ledger.end <= position:
            self.check()
        return self.end

    def conclude(self) -> bool:
        """Look at the topics once more, before the goal, or what came, is the end.

        Returns:
            Whether it is. If not, partitions came up whose records are to be waited
            for.

        Raises:
            Error: topics are missing, forbidden or made anew; partitions have no
                leader; what the group had could not be fetched; or nothing can be told.
        """
        if self._look():
            return False
        if not self.goal.reached:
            self._watch.check_leaders()
            self._acquirer.check()
        return True

    def _look(self) -> bool:
        portal = self._portal
        self.check()
        assert portal is not None, "a member that runs has one"
        try:
            looked = portal.start_task_soon(self._watch.look)
        except RuntimeError:  # it has just ended
            self._wait(lambda: False, STOP_TIMEOUT)
            self.check()
            raise
        looked.add_done_callback(lambda _: self._told())
        self._wait(looked.done, LOOK_TIMEOUT)
        self.check()
        if not looked.done():
            raise ConnectionFailedError(
                f"no broker told of the topics within {LOOK_TIMEOUT:g} s"
            )
        return looked.result()

    @property
    def ended(self) -> bool:
        """Nothing more will come; `check` says why."""
        return self._stopping or self._error is not None

    def check(self) -> None:
        """Raise what ended the member, if anything did.

        Raises:
            Error: what it was.
            ClosedError: `stop` or `stop_soon` did.
        """
        if self._error is not None:
            raise fresh(self._error)
        if self._stopping:
            raise ClosedError("the source was told to end; start the query again")

    def figures(self) -> Mapping[str, int]:
        """Give counts of this member, and the group's lag."""
        return {**self._acquirer.snapshot(), "lag": self._watch.standing.lag}

    def stop_soon(self) -> None:
        """Have the member enter and accept what is here, and leave the group."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._call(self._stop_now)

    def leave(self) -> None:
        """As `stop_soon`, and wait for it; may be repeated."""
        self.stop_soon()
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT)

    def stop(self) -> None:
        """As `leave`, and let another driver in; may be repeated."""
        self.leave()
        self._keeper.close()

    # In the member's thread.

    def _run(self) -> None:
        try:
            anyio.run(self._main)
        except BaseException as error:  # noqa: BLE001 (raised where Spark asks)
            self._error = error
        finally:
            self._portal = None
            self._told()

    async def _main(self) -> None:
        self._stop = anyio.Event()
        async with BlockingPortal() as portal, self._admin:
            self._portal = portal
            try:
                await self._watch.begin()
                self._told()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._watch.keep_looking, self._acquirer.fail)
                    tasks.start_soon(self._mind_ledger)
                    tasks.start_soon(self._mind_parent)
                    tasks.start_soon(self._keep_sweeping)
                    try:
                        await self._keep_acquiring()
                    finally:
                        tasks.cancel_scope.cancel()
            except Exception as error:  # noqa: BLE001 (raised where Spark asks)
                self._error = _only(error)

    async def _keep_acquiring(self) -> None:
        """Be a member; join anew when no broker could be reached."""
        attempt = 0
        while not self._stopping:
            try:
                await self._acquirer.run()
                return
            except ConnectionFailedError as error:
                self._acquirer.trouble = error
                delay = RESTART_DELAYS[min(attempt, len(RESTART_DELAYS) - 1)]
                _log.warning("cannot join", reason=str(error), again_in=delay)
            attempt += 1
            assert self._stop is not None, "running"
            with anyio.move_on_after(delay):
                await self._stop.wait()

    async def _mind_ledger(self) -> None:
        """Notice a newer driver though there is nothing to write.

        Where a place has no locks both run until then, and are one member: each of
        them puts the other out of the group again and again.
        """
        while True:
            await anyio.sleep(LEDGER_INTERVAL)
            try:
                await run_sync(self._keeper.check)
            except LedgerTakenError as error:
                self._acquirer.fail(error)
                return
            except LedgerError as error:
                # Nothing is accepted without a word there: the next entry will tell.
                _log.warning("the ledger could not be looked at", reason=str(error))

    async def _keep_sweeping(self) -> None:
        """Remove what trims leave, first of all those of the driver before this one."""
        while True:
            while await run_sync(self._keeper.sweep):
                pass
            await self._trimmed.wait_until(FOREVER)

    async def _mind_parent(self) -> None:
        """End with Spark: a question that waits does not see its socket's end.

        The next driver would find the ledger in use.
        """
        parent = os.getppid()
        while os.getppid() == parent:  # noqa: ASYNC110 (the system offers no event)
            await anyio.sleep(PARENT_INTERVAL)
        _log.warning("Spark has ended without a word; the source ends too")
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._stop_now()

    def _stop_now(self) -> None:
        if self._stop is not None:
            self._stop.set()
        self._acquirer.stop()

    # Small things.

    def _told(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wake(self) -> None:
        self._call(self._acquirer.wake)

    def _call(self, what: Callable[[], None]) -> None:
        """Have something done in the member's thread, if that still runs."""
        portal = self._portal
        if portal is None:
            return
        with suppress(RuntimeError):  # it has just ended
            portal.start_task_soon(what)

    def _wait(self, until: Callable[[], bool], timeout: float) -> None:
        def done() -> bool:
            return until() or self.ended

        with self._changed:
            self._changed.wait_for(done, timeout)


def _only(error: Exception) -> Exception:
    """Give the one exception of a task group that failed for one reason."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
