"""The errors already raised in the application: each one is raised once.

A topic's error begins when its first partition fails, or when its metadata has an
error. It ends when no partition fails and the metadata has no error. Until then it is
one error, however many partitions and leaders repeat it.
"""

from collections.abc import Callable, Collection
from typing import Final, final

from sharecons.errors import AuthorizationError, BrokerError, Error
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.partitions import SharePartition

__all__ = ["METADATA", "ReportedErrors", "fetch_error", "topic_error"]

METADATA: Final = None
"""The source of an error that does not belong to one partition."""

ErrorSource = SharePartition | None


@final
class ReportedErrors:
    """The current errors by topic and code, each with its sources."""

    def __init__(self) -> None:
        self._sources: dict[tuple[str, int], set[ErrorSource]] = {}
        self._held: tuple[Error, float] | None = None

    def begin(self, topic: str, code: int, source: ErrorSource) -> bool:
        """Add an error; return whether it must be raised."""
        # A group has one authorization, for all of its topics.
        where = "" if code == Code.GROUP_AUTHORIZATION_FAILED else topic
        sources = self._sources.setdefault((where, code), set())
        is_new = not sources
        sources.add(source)
        return is_new

    def is_known(self, code: int, source: ErrorSource) -> bool:
        """Return whether this source has already reported the code."""
        return any(
            source in sources
            for (_, reported), sources in self._sources.items()
            if reported == code
        )

    def end_fetch_errors(self, share_partition: SharePartition) -> None:
        """End the errors of a partition, which was fetched."""
        self._keep(lambda topic, source: source != share_partition)

    def end_metadata_errors(self, topic: str) -> None:
        """End the metadata errors of a topic, whose metadata has changed."""
        self._keep(lambda named, source: source is not METADATA or named != topic)

    def keep_only(self, assigned: Collection[SharePartition]) -> None:
        """End errors of unassigned partitions, so that they can be raised again."""
        self._keep(lambda topic, source: source is METADATA or source in assigned)

    def clear(self) -> None:
        """End all errors: a new subscription raises them again."""
        self._sources.clear()
        self._held = None

    # A rejected heartbeat does not name the topic; metadata does.

    def hold(self, error: Error, now: float) -> None:
        """Keep an error of the whole subscription until metadata is newer than it."""
        self._held = (error, now)

    def take_held(self, described_at: float) -> Error | None:
        """Return the kept error, if newer metadata has no topic that explains it.

        Args:
            described_at: when the metadata was requested.
        """
        if self._held is None or described_at < self._held[1]:
            return None
        (error, _), self._held = self._held, None
        return None if self._is_explained() else error

    def _is_explained(self) -> bool:
        return any(
            code == Code.TOPIC_AUTHORIZATION_FAILED and METADATA in sources
            for (_, code), sources in self._sources.items()
        )

    def _keep(self, keeps: Callable[[str, ErrorSource], bool]) -> None:
        for (topic, code), sources in list(self._sources.items()):
            sources.difference_update([s for s in sources if not keeps(topic, s)])
            if not sources:
                del self._sources[topic, code]


def topic_error(topic: str, code: int, doing: str = "") -> Error:
    """Return the error of a whole topic; `doing` is the operation that failed."""
    name = code_name(code)
    if code == Code.INVALID_TOPIC_EXCEPTION:
        return BrokerError(f"{topic!r} is no name for a topic", code=code, name=name)
    text = f"topic {topic!r} is not readable: {doing}{name}; this needs READ on it"
    return AuthorizationError(text, code=code, name=name)


def fetch_error(topic: str, partition: int, code: int, message: str | None) -> Error:
    """Return the error of a partition's fetch."""
    doing = f"fetching {topic}-{partition}: "
    if code == Code.TOPIC_AUTHORIZATION_FAILED:
        return topic_error(topic, code, doing)
    name = code_name(code)
    text = f"{doing}{name}"
    if message:
        text += f" ({message})"
    if code == Code.GROUP_AUTHORIZATION_FAILED:
        text += "; the principal needs READ on the group"
        return AuthorizationError(text, code=code, name=name)
    return BrokerError(text, code=code, name=name)
