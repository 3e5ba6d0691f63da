"""The properties of Kafka's share consumer, as arguments of consumers and workers.

Each property of Java's consumers is in one of these: `ARGUMENTS`, which has the options
of a member, has an effect, `REFUSED` raises, `WITHOUT_EFFECT` results in a warning, and
`DESERIALIZERS` in a message. docs/consumer-running.md shows the same tables; a test
compares them. Connections and security are in `security`.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import Any, Final

from sharecons.config.validation import (
    MODES,
    check_bool,
    check_choice,
    check_string,
    whole_number,
)
from sharecons.member.settings import MEMBER_OPTIONS
from sharecons.properties.errors import PropertyError, check_property
from sharecons.properties.known_properties import MISSPELLED, unknown_warning

__all__ = [
    "ARGUMENTS",
    "BYTES",
    "DESERIALIZERS",
    "REFUSED",
    "WITHOUT_EFFECT",
    "convert_properties",
    "convert_property",
    "effect_warning",
]

Check = Callable[[str, Any], Any]

ARGUMENTS: Final[Mapping[str, tuple[str, Check]]] = {
    # librdkafka's name.
    "fetch.wait.max.ms": ("max_wait", MEMBER_OPTIONS["max_wait"].check),
    **{
        entry.kafka_property: (name, entry.check)
        for name, entry in MEMBER_OPTIONS.items()
        if entry.kafka_property is not None
    },
    "group.id": ("group_id", check_string),
    "share.acknowledgement.mode": (
        "acknowledgement",
        partial(check_choice, choices=MODES),
    ),
}
"""Arguments and their checks by properties."""

REQUIRED: Final = ("bootstrap.servers", "group.id")

_OF_GROUP: Final = "is a config of the group: run `sharecons groups configure`"
_NO_MEMBERS: Final = "does not exist in share groups"

REFUSED: Final[Mapping[str, str]] = {
    "auto.offset.reset": (
        "the group starts at share.auto.offset.reset, a config of the group; pass "
        "auto_offset_reset=, which sets it"
    ),
    "enable.auto.commit": (
        "share groups commit no offsets; use share.acknowledgement.mode"
    ),
    "group.instance.id": f"{_NO_MEMBERS}; pass member_id= to keep a member's id",
    "group.protocol": f"{_NO_MEMBERS}: there is one protocol",
    "group.remote.assignor": f"{_NO_MEMBERS}: the broker assigns partitions",
    "heartbeat.interval.ms": (
        "share.heartbeat.interval.ms, a config of the group, replaces it"
    ),
    "interceptor.classes": "Java classes cannot run here; use on_acknowledged=",
    "isolation.level": "share.isolation.level, a config of the group, replaces it",
    "partition.assignment.strategy": f"{_NO_MEMBERS}: the broker assigns partitions",
    "session.timeout.ms": (
        "share.session.timeout.ms, a config of the group, replaces it"
    ),
    "share.assignment.interval.ms": _OF_GROUP,
    "share.auto.offset.reset": (
        f"{_OF_GROUP}, or pass auto_offset_reset=, which sets it"
    ),
    "share.delivery.count.limit": _OF_GROUP,
    "share.heartbeat.interval.ms": _OF_GROUP,
    "share.isolation.level": _OF_GROUP,
    "share.partition.max.record.locks": _OF_GROUP,
    "share.record.lock.duration.ms": _OF_GROUP,
    "share.renew.acknowledge.enable": _OF_GROUP,
    "share.session.timeout.ms": _OF_GROUP,
}
"""Reasons by properties. Java's share consumer rejects most of these as well."""

_FIXED: Final = "has a fixed value"
_JAVA: Final = "concerns Java only"
_METRICS: Final = "metrics are read with `consumer.metrics()`"

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "allow.auto.create.topics": "the consumer never creates topics",
    "auto.include.jmx.reporter": _METRICS,
    "bootstrap.resolve.timeout.ms": "pass connect_timeout=",
    "check.crcs": "checksums are always checked",
    "client.dns.lookup": "all addresses of a name are tried",
    "config.providers": "values are used as they are in the file",
    "connections.max.idle.ms": _FIXED,
    "default.api.timeout.ms": "commit() and aclose() have a timeout of their own",
    "exclude.internal.topics": "topics are subscribed by name",
    "max.partition.fetch.bytes": "a share fetch has only fetch.max.bytes",
    "max.poll.interval.ms": "locks limit the processing time instead",
    "metadata.cluster.check.enable": _FIXED,
    "metadata.max.age.ms": _FIXED,
    "metadata.recovery.rebootstrap.trigger.ms": _FIXED,
    "metadata.recovery.strategy": _FIXED,
    "metric.reporters": _METRICS,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "receive.buffer.bytes": _FIXED,
    "reconnect.backoff.max.ms": _FIXED,
    "reconnect.backoff.ms": _FIXED,
    "retry.backoff.max.ms": _FIXED,
    "retry.backoff.ms": _FIXED,
    "security.providers": _JAVA,
    "send.buffer.bytes": _FIXED,
    "socket.connection.setup.timeout.max.ms": "pass connect_timeout=",
    "socket.connection.setup.timeout.ms": "pass connect_timeout=",
}
"""Reasons by properties."""

DESERIALIZERS: Final = ("key.deserializer", "value.deserializer")
BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"

CHECKED_PREFIXES: Final = ("fetch.", "group.", "max.p", "share.")
"""Unknown properties that begin with these are probably misspelled."""


def convert_properties(
    properties: Mapping[str, str], overrides: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments of a consumer or worker in these properties.

    Args:
        properties: as in a properties file; the names of producers, brokers, TLS and
            SASL are ignored.
        overrides: the arguments of the application.

    Raises:
        PropertyError: a property is refused, invalid or missing.
    """
    for name in properties:
        if name in REFUSED:
            raise PropertyError(name, REFUSED[name])
    arguments: dict[str, object] = {}
    for name, (argument, _) in ARGUMENTS.items():
        if text := properties.get(name, "").strip():
            arguments[argument] = convert_property(name, text)
        elif name in REQUIRED and argument not in overrides:
            near = get_close_matches(name, properties, 1, MISSPELLED)
            hint = f"; is {near[0]} misspelled?" if near else ""
            raise PropertyError(name, f"missing; add it, or pass {argument}={hint}")
    arguments |= overrides
    if arguments.get("acknowledgement") == MODES[0]:
        # The default of a consumer; a worker has this mode, and no argument for it.
        del arguments["acknowledgement"]
    return arguments


def convert_property(name: str, text: str) -> object:
    """Return the argument for one of `ARGUMENTS`.

    Raises:
        PropertyError: it is invalid.
    """
    _, check = ARGUMENTS[name]
    # The arguments of the check are the limits of the property.
    limits = {key: each.default for key, each in signature(check).parameters.items()}
    if "minimum" in limits:
        return _number(name, text, limits["minimum"], limits["maximum"])
    choices = ("true", "false") if check is check_bool else limits.get("choices")
    if choices is None:
        check_property(name, check, text)
        return text
    if text.lower() not in choices:
        raise PropertyError(name, f"must be {' or '.join(choices)}, not {text!r}")
    return text.lower() == "true" if check is check_bool else text.lower()


def _number(name: str, text: str, minimum: float, maximum: float) -> float:
    """Return a whole number, or seconds for milliseconds."""
    unit, scale = (
        ("milliseconds", 1000) if name.endswith(".ms") else ("a whole number", 1)
    )
    low, high = round(minimum * scale), round(maximum * scale)
    number = whole_number(text)
    if number is None or not low <= number <= high:
        raise PropertyError(
            name, f"must be {unit} between {low:,} and {high:,}, not {text!r}"
        )
    return number if scale == 1 else number / scale


def effect_warning(name: str) -> str | None:
    """Return a warning if the property has no effect or seems misspelled."""
    if reason := WITHOUT_EFFECT.get(name):
        return f"{name}: {reason}"
    return unknown_warning(name, {*ARGUMENTS, *REFUSED}, CHECKED_PREFIXES)
