"""Loads the arguments of a consumer or a worker from a Kafka properties file."""

from collections.abc import Mapping
from os import fspath
from types import MappingProxyType

from sharecons.config.properties import Properties
from sharecons.config.properties.consumer_properties import convert_properties
from sharecons.config.properties.errors import PropertyError
from sharecons.config.properties.security import build_security_parts
from sharecons.config.properties.sources import MergedProperties
from sharecons.config.security import Security
from sharecons.log import get_logger

__all__ = ["load_arguments"]

_log = get_logger(__name__)


def load_arguments(
    properties: Properties,
    given: Mapping[str, object],
    without_effect: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, object]:
    """Return the arguments of a properties file, overridden by the given ones.

    Properties without an effect are logged as warnings.

    Args:
        without_effect: reasons by properties that have an effect elsewhere only.

    Raises:
        ConfigurationError: the file cannot be read, or a property is invalid, missing,
            or impossible in a share group; the message has the line.
    """
    merged = MergedProperties()
    if isinstance(properties, Mapping):
        merged.add(properties, dict.fromkeys(properties, "properties"))
        where = "properties"
    else:
        merged.add_file(properties)
        where = fspath(properties)
    warnings = list(merged.warnings)
    try:
        used = {
            name: text
            for name, text in merged.properties.items()
            if name not in without_effect
        }
        found = convert_properties(used, given)
        security = given.get("security")
        if security is None:
            if warning := merged.protocol_warning():
                warnings.append(warning)
            context, credentials = build_security_parts(merged.properties)
            if context is not None or credentials is not None:
                security = Security(ssl_context=context, credentials=credentials)
    except PropertyError as error:
        raise merged.with_origin(error, where) from error
    for warning in warnings:
        _log.warning("property without an effect", reason=warning)
    ignored = {
        name: reason
        for name, reason in without_effect.items()
        if name in merged.properties
    }
    for name, reason in {**found.warnings, **ignored}.items():
        _log.warning(
            "property without an effect", file=where, property=name, reason=reason
        )
    return {**found.arguments, "security": security}
