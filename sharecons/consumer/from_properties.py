"""Makes a consumer from a Kafka properties file."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from sharecons.config.properties import Properties
from sharecons.record import KeyT, ValueT

if TYPE_CHECKING:
    from sharecons.consumer.share_consumer import ShareConsumer

__all__ = ["FromProperties"]


class FromProperties:
    """Adds `from_properties` to `ShareConsumer`."""

    @classmethod
    def from_properties(
        cls,
        properties: Properties,
        *topics: str | Iterable[str],
        key_deserializer: Callable[[bytes], KeyT] | None = None,
        value_deserializer: Callable[[bytes], ValueT] | None = None,
        **arguments: Any,
    ) -> "ShareConsumer[KeyT, ValueT]":
        """Return a consumer with the settings of a Kafka properties file.

        Properties without an effect are logged as warnings. docs/consumer-running.md
        has the table of all properties.

        Args:
            properties: the path of the file, or properties by name.
            topics: the names of the topics.
            arguments: arguments of `ShareConsumer`, which override the file.

        Raises:
            ConfigurationError: the file cannot be read, or a property is invalid,
                missing, or impossible in a share group; the message has the line.
        """
        given = {
            "key_deserializer": key_deserializer,
            "value_deserializer": value_deserializer,
            **arguments,
        }
        # Imported here: programs that pass arguments do not need it.
        from sharecons.config.properties.member_arguments import load_arguments

        create = cast("Callable[..., ShareConsumer[KeyT, ValueT]]", cls)
        return create(*topics, **load_arguments(properties, given))
