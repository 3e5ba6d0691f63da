"""A producer at work, for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from sharecons.config.validation import parse_bootstrap
from sharecons.net.broker_pool import BrokerPool
from sharecons.net.cluster import Cluster
from sharecons.net.producer import IdempotentProducer

__all__ = ["producing"]


@asynccontextmanager
async def producing(
    bootstrap_servers: str, **options: Any
) -> AsyncIterator[IdempotentProducer]:
    cluster = Cluster(
        parse_bootstrap(bootstrap_servers), client_id="test", software_version="0"
    )
    async with BrokerPool(cluster) as brokers, anyio.create_task_group() as tasks:
        producer = IdempotentProducer(brokers, **options)
        tasks.start_soon(producer.run)
        yield producer
        tasks.cancel_scope.cancel()
