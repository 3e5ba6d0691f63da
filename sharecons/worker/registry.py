"""The handlers that a worker has by topic, until it starts."""

from collections.abc import Collection, Iterable
from typing import Any

from sharecons.errors import ConfigurationError
from sharecons.member.settings import MemberSettings
from sharecons.worker.arguments import check_topics_differ
from sharecons.worker.handler import Handler
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.routes import Route, Routes

__all__ = ["HandlerRegistry"]


class HandlerRegistry:
    """Adds handlers to a worker, and checks that their topics differ.

    Args:
        defaults: the worker's settings, for what a handler does not have.
        member: how the worker joins its group.

    Attributes:
        routes: the handlers that were added until now.
    """

    def __init__(self, defaults: HandlerSettings, member: MemberSettings) -> None:
        self._defaults = defaults
        self._member = member
        self.routes = Routes({}, member.fetch.group_id)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to consume: topics with a handler, then retry topics."""
        return (*self.routes.by_topic, *sorted(self.routes.retry_topics))

    def add(self, topics: Iterable[str], handler: Handler[Any, Any]) -> None:
        """Add a handler; if this raises, nothing was added.

        Raises:
            ConfigurationError: a topic has a handler, or another purpose, or settings
                contradict each other.
        """
        self.add_all([(topics, handler)])

    def add_all(
        self, handlers: Iterable[tuple[Iterable[str], Handler[Any, Any]]]
    ) -> None:
        """Add handlers, as `add`."""
        by_topic = dict(self.routes.by_topic)
        routes_of: dict[Handler[Any, Any], Route] = {}
        for topics, handler in handlers:
            # An object for several topics is one handler, with one concurrency.
            route = routes_of.setdefault(handler, handler.route(self._defaults))
            for topic in topics:
                if topic in by_topic:
                    raise _two_handlers(topic, by_topic[topic], route)
                by_topic[topic] = route
        routes = Routes(by_topic, self._member.fetch.group_id)
        check_topics_differ(by_topic, routes.retry_topics, routes.dead_letter_topics)
        _check_offset_reset(self._member, routes.retry_topics)
        self.routes = routes


def _check_offset_reset(
    settings: MemberSettings, retry_topics: Collection[str]
) -> None:
    """Check that the worker does not let its group read retry topics from their end.

    Raises:
        ConfigurationError: its `auto_offset_reset` is latest.
    """
    if retry_topics and settings.auto_offset_reset.value == "latest":
        raise ConfigurationError(
            'auto_offset_reset="latest" cannot be combined with retry_topics: the '
            "group would never receive copies that are written to a retry topic before "
            'the group reads it; pass auto_offset_reset="earliest"'
        )


def _two_handlers(topic: str, one: Route, other: Route) -> ConfigurationError:
    return ConfigurationError(
        f"topic {topic!r} has two handlers, {one.name} and {other.name}: a record goes "
        "to one handler; use one function that calls both"
    )
