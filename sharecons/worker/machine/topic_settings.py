"""Finds the settings of a record's handler: by its topic, or by its origin's.

A record of a retry topic returns to the handler in which it failed. Its headers name
the topic of its origin. Headers are read in retry topics only, because any producer can
write them to any topic.

Without valid headers, or if no handler has the topic of the origin, the handler is the
only one with this retry topic. If several handlers share the topic, the record has
none: it must not reach the wrong one.
"""

from collections.abc import Mapping
from typing import Any, Final, final

from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.retry_topics import RetryState, read_retry_state

__all__ = ["WITHOUT_HANDLER", "TopicSettings"]

WITHOUT_HANDLER: Final = (
    "several handlers have this retry topic, and the headers of the record do not name "
    "the topic of one of them as its origin"
)


@final
class TopicSettings:
    """The settings of a worker's handlers by topic; immutable.

    Args:
        by_topic: the settings of each topic that the worker consumes, without retry
            topics. Each handler has a HandlerSettings object of its own.
        group: the worker's group.

    Attributes:
        by_topic, group: as the arguments.
        handlers: the settings of each handler, in the order of their first topics.
        retry_topics: the names of the retry topics of all handlers.
    """

    def __init__(self, by_topic: Mapping[str, HandlerSettings], group: str) -> None:
        self.by_topic = dict(by_topic)
        self.group = group
        self.handlers: tuple[HandlerSettings, ...] = tuple(
            dict.fromkeys(self.by_topic.values())
        )
        self._sharing: dict[str, list[HandlerSettings]] = {}
        for settings in self.handlers:
            for name in settings.retry_topics.names:
                self._sharing.setdefault(name, []).append(settings)
        self.retry_topics = frozenset(self._sharing)

    def find(self, record: Any) -> tuple[HandlerSettings | None, RetryState | None]:
        """Return the settings of a record's handler, and its state in a retry topic.

        The settings are None if several handlers share its retry topic and its headers
        do not name the topic of one of them. The state is None in other topics, and
        without valid headers.
        """
        topic = record.topic
        settings = self.by_topic.get(topic)
        if settings is not None:
            return settings, None
        sharing = self._sharing[topic]
        state = read_retry_state(record.headers)
        if state is not None:
            settings = self.by_topic.get(state.origin.topic)
        if settings is None and len(sharing) == 1:
            settings = sharing[0]
        return settings, state

    def longest_delay(self, retry_topic: str) -> float:
        """Return the longest delay, in seconds, of records of a retry topic."""
        sharing = self._sharing[retry_topic]
        return max(settings.retry_topics.longest_delay for settings in sharing)

    def substitute(self, retry_topic: str) -> HandlerSettings:
        """Return the settings for a record of a retry topic that has no handler.

        Another handler than the first one is only chosen for its dead-letter topic.
        """
        sharing = self._sharing[retry_topic]
        return next((each for each in sharing if each.dead_letter), sharing[0])

    def topics_of(self, settings: HandlerSettings) -> frozenset[str]:
        """Return the topics of a handler, with the retry topics only it has."""
        own = [topic for topic, each in self.by_topic.items() if each is settings]
        retries = [name for name, each in self._sharing.items() if each == [settings]]
        return frozenset([*own, *retries])
