"""`load_properties` and `load_security`: a Kafka properties file as arguments."""

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Literal, Unpack, cast

from sharecons.config.security import Security
from sharecons.log import get_logger
from sharecons.member.settings import MemberOptions
from sharecons.properties.consumer_properties import (
    BYTES,
    DESERIALIZERS,
    convert_properties,
    effect_warning,
)
from sharecons.properties.errors import PropertyError
from sharecons.properties.sources import MergedProperties

__all__ = ["MemberArguments", "load_properties", "load_security"]

Source = str | PathLike[str] | Mapping[str, str]
"""The path of a properties file, or properties by name."""

_log = get_logger(__name__)


class MemberArguments(MemberOptions):
    """Keyword arguments of `ShareConsumer` and `ShareWorker`."""

    group_id: str


class Overrides(MemberOptions, total=False):
    """Arguments that override properties."""

    group_id: str
    acknowledgement: Literal["implicit", "explicit"]


def load_properties(source: Source, **overrides: Unpack[Overrides]) -> MemberArguments:
    """Return the arguments of a consumer or worker in a Kafka properties file.

        ShareConsumer("orders", **load_properties("client.properties"))
        ShareWorker("orders", charge, **load_properties("client.properties"))

    Logs a warning for each property without an effect. docs/consumer-running.md has the
    table of all properties.

    Args:
        source: the path of the file, or properties by name.
        overrides: arguments of the client, which override the file. Arguments without
            a property, such as deserializers, are passed to the client itself.

    Raises:
        ConfigurationError: the file cannot be read, or a property is invalid, missing,
            or impossible in a share group; the message has the line.
    """
    merged = _read(source)
    try:
        arguments = convert_properties(merged.properties, overrides)
        if arguments.get("security") is None:
            arguments["security"] = merged.build_security()
    except PropertyError as error:
        default = None if isinstance(source, Mapping) else fspath(source)
        raise merged.with_origin(error, default) from error
    for name, text in merged.properties.items():
        if warning := effect_warning(name):
            merged.warn(name, warning)
        elif name in DESERIALIZERS and text.strip() != BYTES:
            # The application can pass a deserializer; then nothing is wrong.
            _log.info("deserializer of Java is not used", property=name)
    _log_warnings(merged)
    return cast("MemberArguments", arguments)


def load_security(source: Source) -> Security:
    """Return TLS and SASL of a Kafka client's properties (`security.protocol` …).

        Producer(security=load_security("client.properties"))

    Accepts the names of Java's clients and of librdkafka; ignores other properties.
    Relative paths start at the working directory. Logs a warning for each property that
    seems misspelled, and if `security.protocol` is missing although there are
    properties for TLS or SASL.

    Args:
        source: the path of a properties file, or properties by name.

    Raises:
        ConfigurationError: the file cannot be read, or a property is invalid; the
            message names it.
    """
    merged = _read(source)
    try:
        security = merged.build_security()
    except PropertyError as error:
        raise merged.with_origin(error) from error
    _log_warnings(merged)
    return security


def _read(source: Source) -> MergedProperties:
    merged = MergedProperties()
    if isinstance(source, Mapping):
        merged.add(source, {})
    else:
        merged.add_file(source)
    return merged


def _log_warnings(merged: MergedProperties) -> None:
    for warning in dict.fromkeys(merged.warnings):
        _log.warning("property without an effect", reason=warning)
