"""Warnings about records whose last delivery ended without an acknowledgement."""

from collections.abc import Iterable
from typing import Any, Final, final

from sharecons.member.group_configs import GroupConfigReader
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.io.event_loop import Clock
from sharecons.protocol.acknowledge.result_log import LastRelease

__all__ = ["ArchiveWarnings"]

WARNING_INTERVAL: Final = 60.0
"""Seconds between two warnings of one kind about one partition."""

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
    """Counts archived records, and warns at most once a minute per partition.

    The delivery limit is read again first, as it can have changed.

    Args:
        log: a logger of `sharecons.log`.
    """

    def __init__(
        self, log: Any, recorder: MetricsRecorder, configs: GroupConfigReader
    ) -> None:
        self._log = log
        self._recorder = recorder
        self._configs = configs
        self._warned_at: dict[tuple[str, int, bool], float] = {}
        self._records: dict[tuple[str, int, bool], int] = {}
        self._unconfirmed: list[LastRelease] = []

    def on_released(self, releases: Iterable[LastRelease], clock: Clock) -> None:
        """Count the records that these archived; log a warning if one is due."""
        is_first = not self._unconfirmed
        self._unconfirmed += releases
        if is_first:
            self._configs.claim(lambda: self._confirm(clock()))

    def _confirm(self, now: float) -> None:
        releases, self._unconfirmed = self._unconfirmed, []
        limit = self._configs.delivery_limit
        for release in releases:
            if release.delivery_count >= limit:
                self._on_archived(release, limit, now)

    def _on_archived(self, release: LastRelease, limit: int, now: float) -> None:
        topic, partition, first, last, _, is_lost = release
        key = topic, partition, is_lost
        count = last - first + 1
        self._recorder.on_archived(count)
        self._records[key] = self._records.get(key, 0) + count
        warned_at = self._warned_at.get(key)
        if warned_at is None or now - warned_at >= WARNING_INTERVAL:
            self._warned_at[key] = now
            self._log.warning(
                LOST if is_lost else RELEASED,
                topic=topic,
                partition=partition,
                offset=first,
                records=self._records.pop(key),
                delivery_limit=limit,
            )
