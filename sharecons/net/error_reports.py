"""Passes the errors of topics and partitions on to the application, each once."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from sharecons.errors import Error
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.fetch.events import FetchRecovered, PartitionError
from sharecons.protocol.group.metadata import Metadata, TopicError
from sharecons.protocol.messages import SharePartition
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
"""The errors of metadata that are raised; the others may pass and are logged."""


class ErrorReports:
    """Decides which errors one member raises.

    Args:
        routing: knows the names of topics.
        raise_error: called with each error to raise.
        wake_leaders: called when a pause has ended.
        log: the member's.
    """

    def __init__(
        self,
        routing: Metadata,
        raise_error: Callable[[Error], None],
        wake_leaders: Callable[[], None],
        log: Any,
    ) -> None:
        self._routing = routing
        self._raise = raise_error
        self._wake_leaders = wake_leaders
        self._log = log
        self._errors = ReportedErrors()

    def subscribed(self) -> None:
        """Raise everything anew."""
        self._errors.clear()

    def assigned(self, assignment: Collection[SharePartition]) -> None:
        """Raise the errors of others anew when they are assigned again."""
        self._errors.keep_only(assignment)

    def heartbeat_rejected(self, error: Error, now: float) -> None:
        """Raise the error, unless metadata names the topics that cause it."""
        self._errors.hold(error, now)
        self._routing.mark_stale(now)

    def described(self, troubles: Iterable[TopicError]) -> None:
        """Take what a metadata response has changed."""
        for topic, code in troubles:
            self._errors.end_metadata_errors(topic)
            if code == Code.NONE:
                self._log.info("topic is there", topic=topic)
            elif code not in _RAISED:
                reason = code_name(code)
                self._log.warning("waiting for topic", topic=topic, reason=reason)
            elif self._errors.begin(topic, code, METADATA):
                self._raise(topic_error(topic, code))
        error = self._errors.take_held(self._routing.described_at)
        if error is not None:
            self._raise(error)

    def fetched(self, result: PartitionError | FetchRecovered) -> None:
        """Raise the first error of a topic; log those of its other partitions."""
        where = result.share_partition
        if isinstance(result, FetchRecovered):
            self._errors.end_fetch_errors(where)
            self._wake_leaders()
            return
        topic = self._routing.names.get(where.topic_id, "?")
        error = fetch_error(topic, where.partition, result.code, result.message)
        is_known = self._errors.is_known(result.code, where)
        if self._errors.begin(topic, result.code, where):
            self._raise(error)
        elif not is_known:
            self._log.info("fetch failed", partition=where.partition, reason=str(error))
