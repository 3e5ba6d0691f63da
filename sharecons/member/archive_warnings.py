"""Warnings about records whose last delivery ended without an acknowledgement."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, final

from sharecons.member.group_configs import GroupConfigReader
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.io.event_loop import FOREVER, Clock
from sharecons.protocol.acknowledge.positions import (
    OffsetRange,
    count_offsets,
    ranges_text,
)
from sharecons.protocol.acknowledge.result_log import LastRelease

__all__ = ["ArchiveWarnings"]

WARNING_INTERVAL: Final = 60.0
"""Seconds between two warnings of one kind."""

RELEASED: Final = (
    "records released on their last delivery are archived: no consumer gets them "
    "again; raise share.delivery.count.limit, or wait before releasing"
)


LOST: Final = (
    "records whose locks were lost on their last delivery are archived: no consumer "
    "gets them again; process them faster, or raise share.delivery.count.limit"
)


@final
class ArchiveWarnings:
    """Counts archived records, and warns at most once a minute of each kind.

    The delivery limit is read again first, as it can have changed. Positions that wait
    for the next line have it after the minute, or when the member closes.

    Args:
        log: a logger of `sharecons.log`.
    """

    def __init__(
        self,
        log: Any,
        recorder: MetricsRecorder,
        configs: GroupConfigReader,
        clock: Clock,
    ) -> None:
        self._log = log
        self._recorder = recorder
        self._configs = configs
        self._clock = clock
        self._next_line: defaultdict[bool, float] = defaultdict(lambda: -FOREVER)
        self._archived: defaultdict[bool, list[OffsetRange]] = defaultdict(list)
        self._unconfirmed: list[LastRelease] = []
        configs.subscribe(self.flush)

    def on_released(self, releases: Iterable[LastRelease]) -> None:
        """Count the records that these archived; log a warning if one is due."""
        is_first = not self._unconfirmed
        self._unconfirmed += releases
        if is_first:
            self._configs.claim(self._confirm)

    def _confirm(self) -> None:
        releases, self._unconfirmed = self._unconfirmed, []
        for release in releases:
            if release.delivery_count >= self._configs.delivery_limit:
                archived = OffsetRange(*release[:4])
                self._recorder.archived += count_offsets([archived])
                self._archived[release.is_lost].append(archived)
        self.flush()

    def flush(self, *, at_end: bool = False) -> None:
        """Log the positions that have no line yet, if one is due.

        Args:
            at_end: it is due, as no more follow.
        """
        now = self._clock()
        for is_lost, archived in self._archived.items():
            if archived and (at_end or now >= self._next_line[is_lost]):
                self._next_line[is_lost] = now + WARNING_INTERVAL
                self._log.warning(
                    LOST if is_lost else RELEASED,
                    records=count_offsets(archived),
                    positions=ranges_text(archived),
                    delivery_limit=self._configs.delivery_limit,
                )
                archived.clear()
