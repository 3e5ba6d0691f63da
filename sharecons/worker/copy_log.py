"""Log lines for copies of records that cannot be written."""

from collections.abc import Sequence
from typing import Any, Final

from sharecons.errors import BrokerError
from sharecons.log import get_logger
from sharecons.protocol.codes import Code
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.positions import position_of

__all__ = ["CopyLog"]

NOT_WRITTEN: Final = 10
"""Records that are named in the log if their last dead letters cannot be written."""

MISSING: Final = (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID)


class CopyLog:
    """Logs failed writes; for a topic that does not exist, one line in all.

    Every record that fails meanwhile needs the topic, so a line for each would bury
    the others.
    """

    def __init__(self, group: str) -> None:
        self._missing: set[str] = set()
        self._log = get_logger(__name__, group=group)

    def on_failure(
        self, topic: str, error: BaseException, seconds: float, position: dict[str, Any]
    ) -> None:
        """Log that a copy was not written to `topic`.

        Args:
            seconds: until it is written again.
            position: the position of the record.
        """
        if not _is_missing(error):
            self._log.warning(
                "copy of a failed record not written; trying again",
                **position,
                seconds=seconds,
                error=str(error),
            )
        elif topic not in self._missing:
            self._missing.add(topic)
            self._log.warning(
                "a topic for copies does not exist: failed records are held until it "
                "does, and can stall their partitions. Create it again",
                copy_topic=topic,
                **position,
                error=str(error),
            )

    def on_unwritten(self, items: Sequence[WorkItem]) -> None:
        """Log the dead letters of last deliveries that no broker has confirmed."""
        for item in items[:NOT_WRITTEN]:
            self._log.error(
                "dead letter not written before the worker ended; the broker archives "
                "the record",
                **position_of(item.record),
            )
        if len(items) > NOT_WRITTEN:
            self._log.error("dead letters not written", records=len(items))

    def on_written(self, topic: str) -> None:
        if topic in self._missing:
            self._missing.remove(topic)
            self._log.warning("a topic for copies exists again", copy_topic=topic)


def _is_missing(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is that there is no topic."""
    while error is not None:
        if isinstance(error, BrokerError) and error.code in MISSING:
            return True
        error = error.__cause__
    return False
