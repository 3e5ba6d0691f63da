"""Requests and responses about the configs of a group."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "AlterGroupConfig",
    "AlterGroupConfigResponse",
    "DescribeGroupConfig",
    "DescribeGroupConfigResponse",
    "DescribeGroupConfigs",
    "DescribeGroupConfigsResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupConfig:
    group_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupConfigResponse:
    """`is_set` is True for the group's own value, False for the brokers' default."""

    error: int
    message: str | None
    value: str | None
    is_set: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupConfigs:
    group_id: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupConfigsResponse:
    """`values` has the configs that the broker knows, by name."""

    error: int
    message: str | None
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterGroupConfig:
    group_id: str
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterGroupConfigResponse:
    error: int
    message: str | None
