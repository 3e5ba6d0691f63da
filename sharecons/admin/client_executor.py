"""Administrative requests that only admin clients make, by brokers and coordinators."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar

import anyio

from sharecons._record import TopicPartition
from sharecons.net.admin_executor import AdminExecutor, Send
from sharecons.protocol.admin.fanout import FanOut
from sharecons.protocol.admin.requests import CoordinatorKind, Reply, coordinator_key
from sharecons.protocol.admin.results import Results
from sharecons.protocol.partitions import SharePartition

__all__ = ["ClientExecutor", "GroupPartition"]

GroupPartition = tuple[str, TopicPartition]

K = TypeVar("K")
V = TypeVar("V")

MAX_CONCURRENT: Final = 8
"""Requests of one call that are divided by group."""

_ANY_NODE: Final = -1


class ClientExecutor(AdminExecutor):
    """Runs the requests of one call of an admin client."""

    async def of_share_partitions(
        self,
        share_partitions: Mapping[GroupPartition, SharePartition],
        action: str,
        send: Send[GroupPartition, V],
    ) -> Results[GroupPartition, V]:
        """Request partitions of share groups from their share coordinators.

        Their requests have one group each: `send` gets partitions of one group.
        """
        fan_out: FanOut[GroupPartition, V] = FanOut(
            share_partitions,
            action,
            lambda key: f"{key[1].topic}-{key[1].partition} of group {key[0]!r}",
        )

        async def route(
            fan_out: FanOut[GroupPartition, V], keys: tuple[GroupPartition, ...]
        ) -> None:
            by_key = {
                coordinator_key(key[0], share_partitions[key]): key for key in keys
            }
            await self._route_by_coordinator(fan_out, CoordinatorKind.SHARE, by_key)

        limiter = anyio.CapacityLimiter(MAX_CONCURRENT)

        async def send_part(
            node_id: int, keys: tuple[GroupPartition, ...]
        ) -> Mapping[GroupPartition, Reply[V]]:
            async with limiter:
                return await send(node_id, keys)

        return await self._run(fan_out, route, send_part, lambda key: key[0])

    async def of_brokers(
        self,
        node_ids: Iterable[int] | None,
        action: str,
        send: Callable[[int], Awaitable[Reply[V]]],
    ) -> Results[int, V]:
        """Request from each broker its own data.

        Args:
            node_ids: the brokers; None for all of the cluster. Brokers that have left
                the cluster are omitted from the results.
        """
        if node_ids is None:
            metadata = await self.brokers.request_topics((), self.deadline)
            node_ids = sorted(metadata.brokers)
        fan_out: FanOut[int, V] = FanOut(node_ids, action, lambda key: f"broker {key}")

        async def send_one(node_id: int, _: tuple[int, ...]) -> Mapping[int, Reply[V]]:
            return {node_id: await send(node_id)}

        return await self._run(fan_out, self._route_to_itself, send_one)

    async def of_topics(
        self,
        names: Iterable[str],
        action: str,
        send: Callable[[tuple[str, ...]], Awaitable[Mapping[str, Reply[V]]]],
    ) -> Results[str, V]:
        """Request topics from any broker, which passes the request on."""
        fan_out: FanOut[str, V] = FanOut(names, action, lambda name: f"topic {name!r}")

        async def send_to_any(_: int, names: tuple[str, ...]) -> Mapping[str, Reply[V]]:
            return await send(names)

        return await self._run(fan_out, self._route_to_any, send_to_any)

    async def _route_to_itself(
        self, fan_out: FanOut[int, V], keys: tuple[int, ...]
    ) -> None:
        metadata = await self.brokers.request_topics((), self.deadline)
        for key in keys:
            if key in metadata.brokers:
                fan_out.set_route(key, key)
            else:
                fan_out.drop(key)

    async def _route_to_any(self, fan_out: FanOut[K, V], keys: tuple[K, ...]) -> None:
        # This raises if no broker can be reached.
        await self.brokers.request_topics((), self.deadline)
        for key in keys:
            fan_out.set_route(key, _ANY_NODE)
