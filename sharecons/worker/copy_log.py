"""Log lines for copies of records that cannot be written."""

from collections.abc import Sequence
from typing import Final

from sharecons.errors import BrokerError
from sharecons.log import get_logger
from sharecons.net.io.event_loop import Clock
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.protocol.codes import Code
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.positions import item_position, item_text, written_text

__all__ = ["CopyLog"]

NOT_WRITTEN: Final = 10
"""Records that are named in the log if their last dead letters cannot be written."""

MISSING: Final = (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID)

QUIET: Final = 120.0
"""Seconds without a failure after which a problem has ended: its records have lost
their locks. The writes of a copy fail after up to 30 s, and follow each other after up
to 30 s."""

NO_TOPIC: Final = ProblemTexts(
    begins="a topic for copies does not exist: failed records are held until it does, "
    "and can stall their partitions. Create it again",
    lasts="the topic for copies still does not exist: failed records are held",
    ends="the topic for copies exists again",
)
NO_WRITE: Final = ProblemTexts(
    begins="copies of failed records not written, trying again: the records are held",
    lasts="copies of failed records still not written, trying again",
    ends="copies of failed records are written again",
)


class CopyLog:
    """Logs failed writes, as one problem for each topic.

    Every record that fails meanwhile needs the topic, so a line for each would bury
    the others.

    Args:
        group: the share group.
        clock: returns the time in seconds.
    """

    def __init__(self, group: str, clock: Clock) -> None:
        self._log = get_logger(__name__, group=group)
        self._clock = clock
        self._failing: dict[str, set[WorkItem]] = {}
        self._no_topic = ProblemLog(self._log, NO_TOPIC)
        self._no_write = ProblemLog(self._log, NO_WRITE)

    def on_failure(self, topic: str, error: BaseException, item: WorkItem) -> None:
        """Begin or extend the problem of `topic`: a copy was not written."""
        failing = self._failing.setdefault(topic, set())
        failing.add(item)
        problems = self._no_topic if _is_missing(error) else self._no_write
        problems.on_failure(
            topic,
            self._clock(),
            copy_topic=topic,
            records=len(failing),
            record=item_text(item),
            reason=str(error),
        )

    def on_written(self, topic: str, item: WorkItem) -> None:
        """End the problem of `topic`; this is quick while no copy has failed."""
        if not self._failing or topic not in self._failing:
            return
        now = self._clock()
        self._no_topic.on_success(topic, now)
        failing = self._failing[topic]
        failing.discard(item)
        if not failing:
            del self._failing[topic]
            self._no_write.on_success(topic, now)

    def on_moved(self, item: WorkItem, written: tuple[str, int, int]) -> None:
        """Log where a record was moved to."""
        self._log.debug(
            "record moved to a retry topic",
            **item_position(item),
            copy=written_text(written),
        )

    def flush(self) -> None:
        """End the problems whose records are not held any more."""
        if self._failing:
            now = self._clock()
            ended = (
                *self._no_topic.end_quiet(now, QUIET),
                *self._no_write.end_quiet(now, QUIET),
            )
            for topic in ended:
                self._failing.pop(str(topic), None)

    def on_unwritten(self, items: Sequence[WorkItem]) -> None:
        """Log the dead letters of last deliveries that no broker has confirmed."""
        for item in items[:NOT_WRITTEN]:
            self._log.error(
                "dead letter not written before the worker ended; the broker archives "
                "the record",
                **item_position(item),
            )
        if len(items) > NOT_WRITTEN:
            self._log.error("dead letters not written", records=len(items))


def _is_missing(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is that there is no topic."""
    while error is not None:
        if isinstance(error, BrokerError) and error.code in MISSING:
            return True
        error = error.__cause__
    return False
