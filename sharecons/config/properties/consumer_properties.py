"""The properties of Kafka's share consumer, as arguments of `ShareConsumer`.

Each property of Java's consumers is in one of three tables: `ARGUMENTS` has an effect,
`REFUSED` raises, and `WITHOUT_EFFECT` results in a warning. docs/consumer-running.md
shows the same tables; a test compares them. Connections and security are in `security`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from sharecons.config.properties.errors import PropertyError

__all__ = [
    "ARGUMENTS",
    "REFUSED",
    "WITHOUT_EFFECT",
    "ConsumerArguments",
    "convert_properties",
]

BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
INT32_MAX: Final = 0x7FFFFFFF
HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class ConsumerArguments:
    """Arguments of `ShareConsumer`.

    Attributes:
        arguments: values by the names of arguments.
        warnings: the reason why a property has no effect, by its name.
    """

    arguments: Mapping[str, object]
    warnings: Mapping[str, str]


def _text(name: str, text: str) -> str:
    return text


def _choice(name: str, text: str) -> str:
    choices = {
        "share.acknowledgement.mode": ("implicit", "explicit"),
        "share.acquire.mode": ("batch_optimized", "record_limit"),
    }[name]
    if text.lower() not in choices:
        raise PropertyError(name, f"must be {' or '.join(choices)}, not {text!r}")
    return text.lower()


def _bool(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise PropertyError(name, f"must be true or false, not {text!r}")
    return text.lower() == "true"


def _whole_number(name: str, text: str, low: int, high: int, unit: str) -> int:
    if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
        raise PropertyError(
            name, f"must be {unit} between {low:,} and {high:,}, not {text!r}"
        )
    return int(text)


def _count(name: str, text: str) -> int:
    return _whole_number(name, text, 1, INT32_MAX, "a whole number")


def _count_or_zero(name: str, text: str) -> int:
    return _whole_number(name, text, 0, INT32_MAX, "a whole number")


def _wait(name: str, text: str) -> float:
    return _whole_number(name, text, 0, HOUR_MS, "milliseconds") / 1000


def _timeout(name: str, text: str) -> float:
    return _whole_number(name, text, 1, HOUR_MS, "milliseconds") / 1000


ARGUMENTS: Final[Mapping[str, tuple[str, Callable[[str, str], object]]]] = {
    "bootstrap.servers": ("bootstrap_servers", _text),
    "client.id": ("client_id", _text),
    "client.rack": ("client_rack", _text),
    "enable.metrics.push": ("enable_metrics_push", _bool),
    "fetch.max.bytes": ("max_bytes", _count),
    "fetch.max.wait.ms": ("max_wait", _wait),
    "fetch.min.bytes": ("min_bytes", _count_or_zero),
    "group.id": ("group_id", _text),
    "max.poll.records": ("max_records", _count),
    "request.timeout.ms": ("request_timeout", _timeout),
    "share.acknowledgement.mode": ("acknowledgement", _choice),
    "share.acquire.mode": ("acquire_mode", _choice),
}
"""Arguments and converters by properties."""

ALIASES: Final = {"fetch.wait.max.ms": "fetch.max.wait.ms"}
"""Our names by librdkafka's."""

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

_DESERIALIZER: Final = "keys and values are bytes: Java classes cannot run here; pass "
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
    "key.deserializer": f"{_DESERIALIZER}key_deserializer=",
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
    "value.deserializer": f"{_DESERIALIZER}value_deserializer=",
}
"""Reasons by properties."""

CHECKED_PREFIXES: Final = ("fetch.", "group.", "max.p", "share.")
"""Unknown properties that begin with these are probably misspelled."""


def convert_properties(
    properties: Mapping[str, str], given: Mapping[str, object]
) -> ConsumerArguments:
    """Return the arguments for `ShareConsumer` in these properties.

    Args:
        properties: as in a properties file; the names of producers, brokers, TLS and
            SASL are ignored.
        given: the arguments of the application, which override properties.

    Raises:
        PropertyError: a property is refused, invalid or missing.
    """
    named = {ALIASES.get(name, name): text for name, text in properties.items()}
    for name in named:
        if name in REFUSED:
            raise PropertyError(name, REFUSED[name])
    arguments: dict[str, object] = {}
    for name, (argument, convert) in ARGUMENTS.items():
        text = named.get(name, "").strip()
        if text:
            arguments[argument] = convert(name, text)
        elif name in REQUIRED and argument not in given:
            raise PropertyError(name, f"missing; add it, or pass {argument}=")
    return ConsumerArguments({**arguments, **given}, _warnings(named, given))


def _warnings(
    properties: Mapping[str, str], given: Mapping[str, object]
) -> dict[str, str]:
    warnings: dict[str, str] = {}
    for name, text in properties.items():
        if reason := WITHOUT_EFFECT.get(name):
            is_used = name.endswith(".deserializer") and (
                text.strip() == BYTES or given.get(name.replace(".", "_")) is not None
            )
            if not is_used:
                warnings[name] = reason
        elif name not in ARGUMENTS and name.startswith(CHECKED_PREFIXES):
            near = get_close_matches(name, [*ARGUMENTS, *REFUSED], 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            warnings[name] = f"unknown property{hint}"
    return warnings
