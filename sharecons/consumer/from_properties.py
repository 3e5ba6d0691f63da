"""Makes a consumer from a Kafka properties file."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast

from sharecons.config.security import Security
from sharecons.log import get_logger
from sharecons.record import KeyT, ValueT

if TYPE_CHECKING:
    from sharecons.consumer.share_consumer import ShareConsumer

__all__ = ["FromProperties", "Properties"]

Properties = str | PathLike[str] | Mapping[str, str]
"""The path of a properties file, or properties by name."""

_log = get_logger(__name__)


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

        Properties without an effect are logged as warnings. docs/consumer.md has the
        table of all properties.

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
        create = cast("Callable[..., ShareConsumer[KeyT, ValueT]]", cls)
        return create(*topics, **_arguments(properties, given))


def _arguments(
    properties: Properties, given: Mapping[str, object]
) -> Mapping[str, object]:
    # Imported here: programs that pass arguments do not need them.
    from sharecons.config.properties.consumer_properties import convert_properties
    from sharecons.config.properties.errors import PropertyError
    from sharecons.config.properties.security import build_security_parts
    from sharecons.config.properties.sources import MergedProperties

    merged = MergedProperties()
    if isinstance(properties, Mapping):
        merged.add(properties, dict.fromkeys(properties, "properties"))
        where = "properties"
    else:
        merged.add_file(properties)
        where = fspath(properties)
    try:
        found = convert_properties(merged.properties, given)
        security = given.get("security")
        if security is None:
            context, credentials = build_security_parts(merged.properties)
            if context is not None or credentials is not None:
                security = Security(ssl_context=context, credentials=credentials)
    except PropertyError as error:
        raise merged.with_origin(error, where) from error
    for warning in merged.warnings:
        _log.warning("property without an effect", reason=warning)
    for name, reason in found.warnings.items():
        _log.warning(
            "property without an effect", file=where, property=name, reason=reason
        )
    return {**found.arguments, "security": security}
