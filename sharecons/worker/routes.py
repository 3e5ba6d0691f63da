"""Which handler of a worker processes a record: by its topic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from sharecons.deserializers import Deserializers
from sharecons.errors import DeserializationError
from sharecons.worker.handlers import HandlerCall
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.topic_settings import TopicSettings

__all__ = ["Route", "Routes"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """A handler, with the parts that only its records use.

    Attributes:
        settings: decide about its records; no other route has this object.
        call: calls the handler.
        deserializers: make the keys and values that the handler receives.
    """

    settings: HandlerSettings
    call: HandlerCall
    deserializers: Deserializers

    @property
    def name(self) -> str:
        """The name of the handler, for messages."""
        return self.call.name

    def deserialize(
        self, items: Iterable[WorkItem]
    ) -> list[tuple[WorkItem, DeserializationError]]:
        """Deserialize the records that have had no call yet; return the failures."""
        failed: list[tuple[WorkItem, DeserializationError]] = []
        for item in items:
            if item.argument is item.record:
                try:
                    item.argument = self.deserializers.apply(item.record)
                except DeserializationError as error:
                    failed.append((item, error))
        return failed


@final
class Routes:
    """The handlers of a worker by topic; immutable.

    Args:
        by_topic: the route of each topic that the worker consumes, without retry
            topics. Several topics can have one route.
        group: the worker's group.

    Attributes:
        by_topic: as the argument.
        routes: the different routes, in the order of their first topics.
        settings: finds the settings of a record's handler, as the machine does.
        retry_topics, dead_letter_topics: the names of these topics of all routes.
    """

    def __init__(self, by_topic: Mapping[str, Route], group: str) -> None:
        self.by_topic = dict(by_topic)
        self.routes: tuple[Route, ...] = tuple(dict.fromkeys(self.by_topic.values()))
        self._by_settings = {route.settings: route for route in self.routes}
        assert len(self._by_settings) == len(self.routes), "settings are not shared"
        self.settings = TopicSettings(
            {topic: route.settings for topic, route in self.by_topic.items()}, group
        )
        self.retry_topics = self.settings.retry_topics
        self.dead_letter_topics = frozenset(
            topic for route in self.routes if (topic := route.settings.dead_letter)
        )

    def of_settings(self, settings: HandlerSettings) -> Route:
        """Return the route that has these settings."""
        return self._by_settings[settings]

    def name_of(self, settings: HandlerSettings) -> str:
        """Return the name of the handler that has these settings."""
        return self._by_settings[settings].name

    def topics_of(self, route: Route) -> tuple[str, ...]:
        """Return the topics of a route, without its retry topics."""
        return tuple(topic for topic, each in self.by_topic.items() if each is route)
