"""A running producer."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from sharecons.config.validation import parse_bootstrap
from sharecons.net.broker_pool import BrokerPool
from sharecons.net.cluster import Cluster
from sharecons.net.io.transport import Network
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.testing import EmbeddedBroker

__all__ = ["producing", "producing_on"]


@asynccontextmanager
async def producing(
    bootstrap_servers: str, *, network: Network | None = None, **options: Any
) -> AsyncIterator[IdempotentProducer]:
    """Yield a producer that runs until the block ends."""
    cluster = Cluster(
        parse_bootstrap(bootstrap_servers),
        network,
        client_id="test",
        software_version="0",
    )
    async with BrokerPool(cluster) as brokers, anyio.create_task_group() as tasks:
        producer = IdempotentProducer(brokers, **options)
        tasks.start_soon(producer.run)
        yield producer
        tasks.cancel_scope.cancel()


def producing_on(
    broker: EmbeddedBroker, **options: Any
) -> AbstractAsyncContextManager[IdempotentProducer]:
    """Return `producing` on an embedded broker, over memory."""
    return producing(broker.bootstrap_servers, network=broker.network, **options)
