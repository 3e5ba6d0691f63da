"""Scenarios that run on a real Kafka, and on an embedded broker in virtual time.

A module of such scenarios has the mark ON_BOTH, and this fixture:

    @pytest.fixture
    def admin(any_admin: AnyAdmin) -> AnyAdmin:
        return any_admin
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pytest

from sharecons.testing import EmbeddedBroker, virtual_time
from tests.kafka_plugin import HALVES, Admin

__all__ = ["ON_ASYNCIO", "ON_BOTH", "AnyAdmin", "EmbeddedAdmin"]


def _loops() -> Iterator[Any]:
    for half in HALVES:
        for name in virtual_time.BACKENDS:
            if half == "embedded":
                yield pytest.param(virtual_time.backend(name), id=f"embedded-{name}")
            else:
                yield pytest.param(name, id=f"kafka-{name}", marks=half.marks)


ON_BOTH: Final = pytest.mark.parametrize("anyio_backend", tuple(_loops()))
"""Run on real Kafka in real time, and on the embedded broker in virtual time."""

ON_ASYNCIO: Final = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""Run on one event loop, which is enough to test a broker or other processes."""


class EmbeddedAdmin:
    """The methods of `Admin` that scenarios use, for a broker without ports."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker
        self.bootstrap_servers = broker.bootstrap_servers
        self.network = broker.network

    def create_topic(
        self,
        partitions: int = 1,
        name: str | None = None,
        replication: int = 1,
        config: Mapping[str, str] | None = None,
    ) -> str:
        topic = name or f"topic-{uuid.uuid4().hex[:12]}"
        self._broker.create_topic(topic, partitions, replication, config)
        return topic

    def delete_topic(self, topic: str) -> None:
        self._broker.delete_topic(topic)

    def produce(
        self,
        topic: str,
        values: Iterable[bytes | str | None],
        partition: int | None = None,
        *,
        batch_size: int = 0,
        linger_ms: int = 0,
        **options: Any,
    ) -> None:
        """Write records in batches of up to 1 MB; ignore a producer's settings."""
        self._broker.produce(topic, values, partition=partition, **options)

    def set_group_config(self, group: str, config: Mapping[str, object]) -> None:
        self._broker.set_group_config(group, config)


AnyAdmin: TypeAlias = Admin | EmbeddedAdmin
