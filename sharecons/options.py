"""What a consumer's arguments must be; every complaint names the argument."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from sharecons.errors import ConfigurationError
from sharecons.protocol.values import Endpoint
from sharecons.untyped import TopicPartition

__all__ = [
    "ACQUIRE_MODES",
    "HOUR",
    "INT32_MAX",
    "MODES",
    "check_callable",
    "check_choice",
    "check_count",
    "check_group_id",
    "check_group_ids",
    "check_names",
    "check_number",
    "check_offset_reset",
    "check_partitions",
    "check_timeout",
    "check_topics",
    "member_id_of",
    "parse_bootstrap",
]

INT32_MAX: Final = 0x7FFFFFFF
HOUR: Final = 3600.0
MODES: Final = ("implicit", "explicit")
ACQUIRE_MODES: Final = ("batch_optimized", "record_limit")

_ADDRESS: Final = re.compile(
    r"(?:\[(?P<v6>[0-9a-fA-F:.]+(?:%[\w.-]+)?)\]|(?P<host>[^:\[\]\s/]+)):(?P<port>\d+)"
)
_OFFSET_RESET: Final = re.compile(r"latest|earliest|by_duration:P\S+")


def parse_bootstrap(servers: str | Sequence[str]) -> list[Endpoint]:
    """Read `host:port`, several of them with commas or as a sequence."""
    given = [servers] if isinstance(servers, str) else servers
    if not isinstance(given, Sequence) or not all(isinstance(a, str) for a in given):
        raise ConfigurationError(
            f"bootstrap_servers must be text, or a sequence of it, not {servers!r}"
        )
    addresses = [address.strip() for text in given for address in text.split(",")]
    endpoints = [_parse_address(address) for address in addresses if address]
    if not endpoints:
        raise ConfigurationError(
            "bootstrap_servers is empty; give host:port, or several"
        )
    return endpoints


def _parse_address(address: str) -> Endpoint:
    # Java's clients take a listener's name in front; people paste it.
    bare = address.split("://", 1)[-1]
    match = _ADDRESS.fullmatch(bare)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise ConfigurationError(
            f"bootstrap_servers: {address!r} is no host:port (as in localhost:9092)"
        )
    return Endpoint(match["v6"] or match["host"], int(match["port"]))


def check_group_id(group_id: str) -> str:
    if not isinstance(group_id, str) or not group_id.strip():
        raise ConfigurationError(f"group_id must be a name, not {group_id!r}")
    return group_id


def check_group_ids(group_ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(check_group_id, group_ids))


def check_names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    """See that these are names; one text alone would be taken for its letters."""
    given = names if isinstance(names, str) else tuple(names)
    if isinstance(given, str) or not all(
        isinstance(name, str) and name.strip() for name in given
    ):
        raise ConfigurationError(f"{what} must be several names, not {given!r}")
    return given


def check_partitions(
    partitions: Iterable[TopicPartition] | None,
) -> tuple[TopicPartition, ...] | None:
    """See that these are partitions, or pairs that could be; None stays None."""
    if partitions is None:
        return None
    given = tuple(partitions)
    for each in given:
        if not isinstance(each, tuple) or not _is_partition(*each):
            raise ConfigurationError(
                f"partitions must be of TopicPartition(topic, number), not {each!r}"
            )
    return tuple(TopicPartition(*each) for each in given)


def _is_partition(topic: object = None, number: object = None, *more: object) -> bool:
    named = isinstance(topic, str) and bool(topic.strip())
    return named and isinstance(number, int) and number >= 0 and not more


def check_topics(topics: Sequence[str]) -> tuple[str, ...]:
    for topic in topics:
        if not isinstance(topic, str) or not topic.strip():
            raise ConfigurationError(f"topics must be names, {topic!r} is none")
    if len(set(topics)) != len(topics):
        twice = sorted({topic for topic in topics if topics.count(topic) > 1})
        raise ConfigurationError(f"topics given twice: {', '.join(twice)}")
    return tuple(topics)


def check_choice(name: str, value: str, choices: Collection[str]) -> str:
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ConfigurationError(f"{name} must be one of {known}, not {value!r}")
    return value


def check_offset_reset(value: str | None) -> str | None:
    if value is not None and not _OFFSET_RESET.fullmatch(value):
        raise ConfigurationError(
            "auto_offset_reset must be 'earliest', 'latest', 'by_duration:' with an "
            f"ISO 8601 duration (as in by_duration:PT1H), or None, not {value!r}"
        )
    return value


def check_number(name: str, value: float, lowest: float, highest: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"{name} must be a number, not {value!r}")
    if not lowest <= value <= highest:
        raise ConfigurationError(
            f"{name} must be from {lowest:,} to {highest:,}, not {value!r}"
        )


def check_count(name: str, value: int, lowest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(f"{name} must be a whole number, not {value!r}")
    check_number(name, value, lowest, INT32_MAX)


def check_timeout(value: float) -> None:
    check_number("timeout", value, 0, inf)


def check_callable(name: str, value: object) -> None:
    if value is not None and not callable(value):
        raise ConfigurationError(f"{name} must be callable or None, not {value!r}")


def member_id_of(name: str | None) -> str:
    """Give the member id that a name stands for, as Kafka spells UUIDs.

    An id spelt so already is taken as it is; any other name always gives the same
    id, and None gives a new one.
    """
    if name is None:
        return _spell(uuid4())
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"member_id must be a name, not {name!r}")
    return name if _is_kafka_uuid(name) else _spell(uuid5(NAMESPACE_OID, name))


def _spell(uuid: UUID) -> str:
    return urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()


def _is_kafka_uuid(text: str) -> bool:
    if not re.fullmatch(r"[A-Za-z0-9_-]{22}", text):
        return False
    try:
        return len(urlsafe_b64decode(text + "==")) == 16
    except Base64Error:
        return False
