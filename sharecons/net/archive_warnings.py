"""Warnings about records that were released on their last delivery."""

from typing import Any, Final, final

from sharecons.metrics.recorder import MetricsRecorder
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult

__all__ = ["ArchiveWarnings"]

WARNING_INTERVAL: Final = 60.0
"""Seconds between two warnings about one partition."""

TEXT: Final = (
    "records released on their last delivery are archived: no consumer gets them "
    "again; raise share.delivery.count.limit, or wait before releasing"
)


@final
class ArchiveWarnings:
    """Counts archived records, and warns at most once a minute per partition.

    Args:
        log: a logger of `sharecons.log`.
    """

    def __init__(self, log: Any, recorder: MetricsRecorder) -> None:
        self._log = log
        self._recorder = recorder
        self._warned_at: dict[tuple[str, int], float] = {}
        self._records: dict[tuple[str, int], int] = {}

    def on_archived(
        self, releases: list[AcknowledgeResult], delivery_limit: int, now: float
    ) -> None:
        """Count the records that these archived; log a warning if one is due."""
        for topic, partition, first, last, _, _ in releases:
            key = topic, partition
            count = last - first + 1
            self._recorder.on_archived(count)
            self._records[key] = self._records.get(key, 0) + count
            warned_at = self._warned_at.get(key)
            if warned_at is None or now - warned_at >= WARNING_INTERVAL:
                self._warned_at[key] = now
                self._log.warning(
                    TEXT,
                    topic=topic,
                    partition=partition,
                    offset=first,
                    records=self._records.pop(key),
                    delivery_limit=delivery_limit,
                )
