"""The tasks beside the pages: a client, the collections, and changes."""

from collections.abc import Iterable

from anyio.abc import TaskGroup

from sharecons.admin import ShareGroupAdmin
from sharecons.dashboard.changes import Changes
from sharecons.dashboard.live import Live
from sharecons.dashboard.workers import Workers
from sharecons.exporter.metrics import Metrics
from sharecons.exporter.snapshot import snapshot_of
from sharecons.group_state.collector import CollectedGroups, GroupCollector
from sharecons.group_state.polling import RECOVERED, collect_repeatedly
from sharecons.group_state.reachability import Reachability
from sharecons.log import get_logger
from sharecons.net.background import Background

__all__ = ["Dashboard"]


class Dashboard:
    """The state of one application: a client, and the only loop that collects.

    Pages and `/metrics` show the same collection. The loop starts with the first
    request: an application that is mounted in another one has no start of its own. It
    ends with `aclose`, or with the event loop.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        groups: Iterable[str],
        interval: float,
        workers: Workers,
    ) -> None:
        self._admin = admin
        self._interval = interval
        self._workers = workers
        self._collector = GroupCollector(admin, groups, max(interval, 10.0))
        self._background: Background | None = None
        self._log = get_logger(__name__)
        self.live = Live(self._collector)
        self._metrics = Metrics()
        self._is_scraped = False
        self.changes = Changes(admin, self.live.show_change)

    @property
    def reached(self) -> bool:
        """True while a broker responds."""
        return self.live.reached

    def update(self, collected: CollectedGroups) -> None:
        """Show a newer collection."""
        self.live.update(collected)
        if self._is_scraped:
            self._metrics.update(snapshot_of(collected, duration=collected.duration))

    def broker_responded(self) -> None:
        """Show that a broker responds, before a collection has ended."""
        self.live.broker_responded()
        self._metrics.broker_responded()

    def metrics(self) -> Metrics:
        """Return the metrics of the exporter; they count after the first call.

        Without scrapes they would take a quarter of the time for nothing.
        """
        if not self._is_scraped:
            self._is_scraped = True
            latest = self.live.collected
            self._metrics.update(snapshot_of(latest, duration=latest.duration))
        return self._metrics

    def start(self) -> None:
        """Begin to collect, unless that has begun."""
        if self._background is None or self._background.has_ended:
            self._background = Background(
                "sharecons dashboard",
                self._start_tasks,
                self._on_ended,
                self._admin.aclose,
            )

    async def aclose(self) -> None:
        """End the loop, and close the connections."""
        if self._background is not None:
            self._background.cancel()
            await self._background.wait()

    def _start_tasks(self, tasks: TaskGroup) -> None:
        self.changes.tasks = tasks
        tasks.start_soon(self._workers.read_repeatedly, self._interval)
        tasks.start_soon(
            collect_repeatedly,
            self._collector,
            Reachability(self._admin),
            self,
            self._interval,
            self._report,
        )

    def _report(self, line: str) -> None:
        if line == RECOVERED:
            self._log.info("groups are read again")
        else:
            self._log.warning("groups cannot be read, retrying", reason=line)

    def _on_ended(self, error: BaseException | None) -> None:
        self.changes.tasks = None
        if isinstance(error, Exception):
            self._log.error("dashboard stopped", exc_info=error)
