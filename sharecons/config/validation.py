"""Validation of a client's arguments; every error message names the argument."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from typing import Final, TypeVar
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from sharecons._record import AcknowledgeType, TopicPartition
from sharecons.errors import ConfigurationError
from sharecons.protocol.partitions import Endpoint

__all__ = [
    "HOUR",
    "INT32_MAX",
    "INT64_MAX",
    "MODES",
    "check_acknowledge_type",
    "check_bool",
    "check_by_partition",
    "check_choice",
    "check_count",
    "check_group_id",
    "check_group_ids",
    "check_mapping",
    "check_names",
    "check_number",
    "check_offset_reset",
    "check_optional_name",
    "check_partitions",
    "check_string",
    "check_timeout",
    "check_topic",
    "check_topic_names",
    "check_topics",
    "check_unicode",
    "member_id_of",
    "parse_bootstrap",
    "whole_number",
]

ValueT = TypeVar("ValueT")

INT32_MAX: Final = 0x7FFFFFFF
INT64_MAX: Final = 0x7FFFFFFFFFFFFFFF
STRING_MAX: Final = 0x7FFF  # bytes; the length of a Kafka string is an int16
TOPIC_MAX: Final = 249  # characters; a file system's 255 less "-" and the partition
HOUR: Final = 3600.0
MODES: Final = ("implicit", "explicit")

_ADDRESS: Final = re.compile(
    r"(?:\[(?P<v6>[0-9a-fA-F:.]+(?:%[\w.-]+)?)\]|(?P<host>[^:\[\]\s/\x00-\x1f\x7f]+)):(?P<port>[0-9]{1,5})"
)
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+")
_OFFSET_RESET: Final = re.compile(r"latest|earliest|by_duration:P\S+")
_KAFKA_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def parse_bootstrap(servers: str | Sequence[str]) -> list[Endpoint]:
    """Return the endpoints in `host:port`, several with commas or as a sequence.

    Raises:
        ConfigurationError: there is none, or one is invalid.
    """
    given = [servers] if isinstance(servers, str) else servers
    if not isinstance(given, Sequence) or not all(isinstance(a, str) for a in given):
        raise ConfigurationError(
            f"bootstrap_servers must be a str or a sequence of str, not {servers!r}"
        )
    addresses = [address.strip() for text in given for address in text.split(",")]
    endpoints = [_parse_address(address) for address in addresses if address]
    if not endpoints:
        raise ConfigurationError(
            "bootstrap_servers is empty; set it to host:port or several"
        )
    return endpoints


def _parse_address(address: str) -> Endpoint:
    # Java's clients accept a listener's name as a prefix, so users paste it.
    bare = address.split("://", 1)[-1]
    match = _ADDRESS.fullmatch(bare)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise ConfigurationError(
            f"bootstrap_servers: {address!r} is not host:port (as in localhost:9092)"
        )
    if match["host"]:
        _check_host(match["host"], address)
    return Endpoint(match["v6"] or match["host"], int(match["port"]))


def _check_host(host: str, address: str) -> None:
    # The resolver encodes names like this, and raises UnicodeError instead of OSError.
    try:
        host.encode("idna")
    except UnicodeError as error:
        reason = error.__cause__ or error
        raise ConfigurationError(
            f"bootstrap_servers: {address!r} has an invalid host name ({reason})"
        ) from error


def check_string(name: str, value: str) -> str:
    """Return `value` if a Kafka request can carry it.

    Raises:
        ConfigurationError: it is not a str, contains a lone surrogate, or is longer
            than 32,767 bytes in UTF-8.
    """
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} must be a str, not {value!r}")
    check_unicode(name, value)
    size = len(value.encode())
    if size > STRING_MAX:
        raise ConfigurationError(
            f"{name} must be at most {STRING_MAX:,} bytes in UTF-8, not {size:,}; "
            f"shorten it ({value[:20]!r}...)"
        )
    return value


def check_unicode(name: str, value: str) -> None:
    """Check that `value` can be encoded; the error message does not contain it."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"{name} must be valid Unicode: it has a lone surrogate at index "
            f"{error.start}; decode the bytes it came from with the right encoding"
        ) from None


def check_optional_name(name: str, value: str | None) -> str | None:
    """Return `value` if it is None or a non-empty string."""
    if value is not None and not check_string(name, value):
        raise ConfigurationError(f"{name} must be a non-empty str or None, not ''")
    return value


def check_group_id(group_id: str) -> str:
    if not isinstance(group_id, str) or not group_id.strip():
        raise ConfigurationError(f"group_id must be a non-empty str, not {group_id!r}")
    return check_string("group_id", group_id)


def check_group_ids(group_ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(check_group_id, group_ids))


def check_names(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names as a tuple; reject a single str, which iterates as characters.

    Raises:
        ConfigurationError: it is no sequence of str, or a name is empty.
    """
    is_sequence = isinstance(names, Iterable) and not isinstance(names, str)
    given = tuple(names) if is_sequence else names
    if not isinstance(given, tuple) or not all(
        isinstance(name, str) and name.strip() for name in given
    ):
        raise ConfigurationError(f"{name} must be a sequence of names, not {given!r}")
    for each in given:
        check_string(name, each)
    return given


def check_topic_names(topics: Iterable[str]) -> tuple[str, ...]:
    """Return the topic names as a tuple; check as `check_names` and `check_topic`."""
    given = check_names("topics", topics)
    return tuple(check_topic("topics", topic) for topic in given)


def check_partitions(
    partitions: Iterable[TopicPartition] | None,
) -> tuple[TopicPartition, ...] | None:
    """Return the partitions as a tuple of `TopicPartition`; None stays None.

    Raises:
        ConfigurationError: one is not a pair of a topic and a partition number.
    """
    if partitions is None:
        return None
    if not isinstance(partitions, Iterable):
        raise ConfigurationError(
            f"partitions must be a sequence of TopicPartition, not {partitions!r}"
        )
    given = tuple(partitions)
    for each in given:
        if not isinstance(each, tuple) or not _is_partition(*each):
            raise ConfigurationError(
                f"partitions must be TopicPartition(topic, partition), not {each!r}"
            )
        check_topic("partitions", each[0])
        check_count(f"partition of topic {each[0]!r}", each[1], 0)
    return tuple(TopicPartition(*each) for each in given)


def check_by_partition(
    name: str, values: Mapping[TopicPartition, ValueT]
) -> dict[TopicPartition, ValueT]:
    """Return a mapping with `TopicPartition` keys; a plain pair counts as one.

    Raises:
        ConfigurationError: it is no mapping, or a key is no partition.
    """
    if not isinstance(values, Mapping):
        raise ConfigurationError(
            f"{name} must be a mapping with TopicPartition keys, not {values!r}"
        )
    keys = check_partitions(values) or ()
    return dict(zip(keys, values.values(), strict=True))


def check_mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} must be a mapping, not {value!r}")


def _is_partition(topic: object = None, number: object = None, *more: object) -> bool:
    named = isinstance(topic, str) and bool(topic.strip())
    return named and isinstance(number, int) and number >= 0 and not more


def check_topic(name: str, topic: str) -> str:
    """Return `topic` if Kafka allows it as the name of a topic.

    Raises:
        ConfigurationError: it does not; the message names the rule.
    """
    check_string(name, topic)
    if topic in (".", ".."):
        rule = 'cannot be "." or ".."'
    elif len(topic) > TOPIC_MAX:
        rule = f"has {len(topic):,} characters, Kafka allows {TOPIC_MAX}"
    elif not _TOPIC.fullmatch(topic):
        rule = "can contain only ASCII letters, digits, '.', '_' and '-'"
    else:
        return topic
    raise ConfigurationError(f"{name}: topic name {topic[:80]!r} {rule}")


def check_topics(
    topics: Iterable[str | Iterable[str]], *, name: str = "topics"
) -> tuple[str, ...]:
    """Return the names; a list of names counts as its names."""
    names: list[str] = []
    for topic in topics:
        if isinstance(topic, str | bytes) or not isinstance(topic, Iterable):
            names.append(topic)  # checked below
        else:
            names.extend(topic)
    for topic in names:
        if not isinstance(topic, str) or not topic.strip():
            raise ConfigurationError(
                f"{name} must be non-empty topic names, not {topic!r}"
            )
        check_topic(name, topic)
    if len(set(names)) != len(names):
        twice = sorted({topic for topic in names if names.count(topic) > 1})
        raise ConfigurationError(f"{name} contain duplicates: {', '.join(twice)}")
    return tuple(names)


def check_choice(name: str, value: str, choices: Collection[str]) -> str:
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ConfigurationError(f"{name} must be one of {known}, not {value!r}")
    return value


def check_acknowledge_type(name: str, value: AcknowledgeType) -> AcknowledgeType:
    if not isinstance(value, AcknowledgeType):
        known = ", ".join(str(kind.name) for kind in AcknowledgeType)
        raise ConfigurationError(
            f"{name} must be an AcknowledgeType ({known}), not {value!r}"
        )
    return value


def check_offset_reset(value: str | None) -> str | None:
    if value is not None and not (
        isinstance(value, str) and _OFFSET_RESET.fullmatch(value)
    ):
        raise ConfigurationError(
            "auto_offset_reset must be 'earliest', 'latest', 'by_duration:' with an "
            f"ISO 8601 duration (as in by_duration:PT1H), or None, not {value!r}"
        )
    return value


def check_number(name: str, value: float, minimum: float, maximum: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"{name} must be a number, not {value!r}")
    if not minimum <= value <= maximum:
        raise ConfigurationError(
            f"{name} must be between {minimum:,} and {maximum:,}, not {value!r}"
        )
    return value


def check_count(name: str, value: int, minimum: int, maximum: int = INT32_MAX) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(f"{name} must be a whole number, not {value!r}")
    check_number(name, value, minimum, maximum)
    return value


def check_bool(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be True or False, not {value!r}")
    return value


def whole_number(text: str | None) -> int | None:
    """Return the number in a text, or None; `int` raises for thousands of digits."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def check_timeout(value: float) -> None:
    check_number("timeout", value, 0, inf)


def member_id_of(name: str | None) -> str:
    """Return the member id for a name, in Kafka's notation of UUIDs.

    A name in that notation is returned unchanged. Any other name always results in the
    same id; None results in a new one.
    """
    if name is None:
        return _format_uuid(uuid4())
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"member_id must be a non-empty str, not {name!r}")
    check_string("member_id", name)
    return (
        name
        if _KAFKA_UUID.fullmatch(name)
        else _format_uuid(uuid5(NAMESPACE_OID, name))
    )


def _format_uuid(uuid: UUID) -> str:
    return urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()
