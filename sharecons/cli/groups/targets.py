"""Where `reset-offsets` sets start offsets to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import OffsetSpec

__all__ = ["Target", "ToCurrent", "ToFile", "ToOffset", "ToSpec"]


@dataclass(frozen=True, slots=True)
class ToSpec:
    """To the beginning or the end of the log, or to a time."""

    spec: OffsetSpec


@dataclass(frozen=True, slots=True)
class ToOffset:
    """To the same offset in all partitions."""

    offset: int


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """To the present start offset, which makes what is in flight available again."""


@dataclass(frozen=True, slots=True)
class ToFile:
    """To the offsets of a file."""

    offsets: Mapping[TopicPartition, int]


Target: TypeAlias = ToSpec | ToOffset | ToCurrent | ToFile
