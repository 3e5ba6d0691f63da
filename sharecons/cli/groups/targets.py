"""The targets of `reset-offsets`: which offsets become the new start offsets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import OffsetSpec

__all__ = ["Target", "ToCurrent", "ToFile", "ToOffset", "ToSpec"]


@dataclass(frozen=True, slots=True)
class ToSpec:
    """The beginning or the end of the log, or a time."""

    spec: OffsetSpec


@dataclass(frozen=True, slots=True)
class ToOffset:
    """The same offset in all partitions."""

    offset: int


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """The current start offset; records in flight become available again."""


@dataclass(frozen=True, slots=True)
class ToFile:
    """The offsets in a file."""

    offsets: Mapping[TopicPartition, int]


Target: TypeAlias = ToSpec | ToOffset | ToCurrent | ToFile
