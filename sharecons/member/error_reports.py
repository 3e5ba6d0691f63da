"""Passing errors of topics and partitions to the application, each once."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from sharecons.errors import Error
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.protocol import error_advice
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.error_advice import advice_for
from sharecons.protocol.fetch.events import FetchRecovered, PartitionError
from sharecons.protocol.group.metadata import Metadata, TopicError
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.reported_errors import (
    METADATA,
    ReportedErrors,
    fetch_error,
    topic_error,
)

__all__ = ["ErrorReports"]

_RAISED = (
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.GROUP_AUTHORIZATION_FAILED,
    Code.INVALID_TOPIC_EXCEPTION,
)
"""The metadata errors to raise. The others are retriable, and are logged."""

_TOPICS = ProblemTexts(
    begins="waiting for topic", lasts="still waiting for topic", ends="topic is there"
)


class ErrorReports:
    """Decides which errors one member raises.

    Args:
        metadata: has the names of topics.
        raise_error: called with each error to raise.
        wake_leaders: called when a pause has ended.
        log: the member's logger.

    Attributes:
        topics: the topics that metadata does not describe.
    """

    def __init__(
        self,
        metadata: Metadata,
        raise_error: Callable[[Error], None],
        wake_leaders: Callable[[], None],
        log: Any,
    ) -> None:
        self._metadata = metadata
        self._raise_error = raise_error
        self._wake_leaders = wake_leaders
        self._log = log
        self._errors = ReportedErrors()
        self.topics = ProblemLog(log, _TOPICS)

    def on_subscribed(self, now: float) -> None:
        """Raise every error again."""
        self._errors.clear()
        self.topics.end_quiet(now, 0.0, "not needed any more")

    def on_assigned(self, assignment: Collection[SharePartition]) -> None:
        """Raise errors of other partitions again when those are assigned again."""
        self._errors.keep_only(assignment)

    def on_heartbeat_rejected(self, error: Error, now: float) -> None:
        """Raise the error, unless metadata names the topics that cause it."""
        # The coordinator rejects the whole heartbeat, and does not name the topic.
        self._errors.hold(error, now)
        self._metadata.mark_stale(now)

    def on_metadata(self, topic_errors: Iterable[TopicError], now: float) -> None:
        """Handle the new topic errors of a metadata response."""
        for topic, code in topic_errors:
            self._errors.end_metadata_errors(topic)
            if code in _RAISED and self._errors.begin(topic, code, METADATA):
                self._raise_error(topic_error(topic, code))
        self._log_topics(now)
        error = self._errors.take_held(self._metadata.requested_at)
        if error is not None:
            self._raise_error(error)

    def _log_topics(self, now: float) -> None:
        """Log the topics that metadata does not describe, as problems that last."""
        codes = self._metadata.topic_codes
        for topic, code in codes.items():
            if code == Code.NONE:
                self.topics.on_success(topic, now)
            elif code not in _RAISED:
                self.topics.on_failure(
                    topic,
                    now,
                    topic=topic,
                    reason=code_name(code),
                    advice=advice_for(error_advice.METADATA, code),
                )

    def check_readable(
        self, topics: Collection[str], codes: Mapping[SharePartition, int]
    ) -> None:
        """Raise the error of a topic or partition that cannot be read now, if any.

        Args:
            codes: the errors of partitions.
        """
        for topic in sorted(self._metadata.unauthorized_topics().intersection(topics)):
            raise topic_error(topic, Code.TOPIC_AUTHORIZATION_FAILED)
        for (topic_id, partition), code in codes.items():
            name = self._metadata.topic_names.get(topic_id, "?")
            raise fetch_error(name, partition, code, None)

    def on_fetch_result(self, result: PartitionError | FetchRecovered) -> None:
        """Raise the first error of a topic; log the errors of its other partitions."""
        share_partition = result.share_partition
        if isinstance(result, FetchRecovered):
            self._errors.end_fetch_errors(share_partition)
            # The pause of a topic is shared, so its other leaders can fetch as well.
            self._wake_leaders()
            return
        topic = self._metadata.topic_names.get(share_partition.topic_id, "?")
        error = fetch_error(
            topic, share_partition.partition, result.code, result.message
        )
        is_known = self._errors.is_known(result.code, share_partition)
        if self._errors.begin(topic, result.code, share_partition):
            self._raise_error(error)
        elif not is_known:
            self._log.info(
                "fetch failed", partition=share_partition.partition, reason=str(error)
            )
