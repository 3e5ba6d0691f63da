"""Loads kio's schemas on first use, and other helpers of the admin client's APIs.

A command sends two or three of some twenty kinds of requests. Loading a schema takes
5 ms, so loading all of them would take longer than the requests.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from sharecons._record import TopicPartition

__all__ = ["NO_EPOCH", "by_topic", "none_if_negative", "operations", "schema"]

NO_EPOCH: Final = -1

_NOT_REQUESTED: Final = -0x80000000

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
"""The names of Kafka's AclOperation by code."""


@cache
def schema(api: str, version: int) -> Any:
    """Return kio's module for a version of an API; `.request` has a request's parts."""
    return import_module(f"kio.schema.{api}.v{version}")


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers of each topic, as requests list them."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def none_if_negative(number: int) -> int | None:
    """Return the number, or None if it is negative, which means there is none."""
    return None if number < 0 else number


def operations(bits: int) -> frozenset[str] | None:
    """Return the allowed operations in a bit field; None if they were not requested."""
    if bits == _NOT_REQUESTED:
        return None
    return frozenset(name for bit, name in _OPERATIONS.items() if bits & 1 << bit)
