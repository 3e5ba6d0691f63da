"""Requests of a producer, and the responses to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sharecons._record import TopicPartition

__all__ = [
    "AppendResult",
    "InitProducerId",
    "InitProducerIdResponse",
    "Produce",
    "ProduceResponse",
    "ProducerIdentity",
]


class ProducerIdentity(NamedTuple):
    """The id and epoch under which a broker counts a producer's batches (KIP-98)."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """Request a new producer id, for idempotence without transactions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    error: int
    identity: ProducerIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Produce:
    """One batch for each of some partitions, to be written by all in-sync replicas.

    `timeout` is how long the leader waits for the replicas, in seconds.
    """

    batches: Mapping[TopicPartition, bytes]
    timeout: float


class AppendResult(NamedTuple):
    """The result of one batch; `base_offset` is the offset of its first record.

    It is negative for a batch that the leader had already, if it no longer knows where.
    """

    error: int
    message: str | None
    base_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse:
    partitions: Mapping[TopicPartition, AppendResult]
    throttle: float
