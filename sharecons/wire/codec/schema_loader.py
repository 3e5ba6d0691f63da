"""What the APIs of administration share: schemas loaded when asked for, and grouping.

A command asks two or three questions, of some twenty that there are. Each schema of
kio's takes 5 ms to load, so that all of them would cost more than the answer.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from sharecons._record import TopicPartition

__all__ = ["NO_EPOCH", "by_topic", "known", "operations", "schema"]

NO_EPOCH: Final = -1

_NOT_ASKED_FOR: Final = -0x80000000

_OPERATIONS: Final[Mapping[int, str]] = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
"""Kafka's AclOperation, by its code."""


@cache
def schema(api: str, version: int) -> Any:
    """Give kio's module of one version of an API; requests' parts are in `.request`."""
    return import_module(f"kio.schema.{api}.v{version}")


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, as requests have them."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def known(number: int) -> int | None:
    """Read a number that Kafka gives as negative where there is none."""
    return None if number < 0 else number


def operations(bits: int) -> frozenset[str] | None:
    """Read which operations are allowed; None if nobody asked."""
    if bits == _NOT_ASKED_FOR:
        return None
    return frozenset(name for bit, name in _OPERATIONS.items() if bits & 1 << bit)
