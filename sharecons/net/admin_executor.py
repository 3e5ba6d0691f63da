"""Running administrative requests: routes them to brokers and retries them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import anyio

from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthenticationError,
    ConnectionFailedError,
    Error,
    ProtocolError,
    UnsupportedVersionError,
)
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.protocol.admin.fanout import FanOut, find_partition
from sharecons.protocol.admin.requests import CoordinatorKind, Reply
from sharecons.protocol.admin.results import Results
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code

__all__ = ["AdminExecutor", "Send"]

K = TypeVar("K")
V = TypeVar("V")

Send = Callable[[int, tuple[K, ...]], Awaitable[Mapping[K, Reply[V]]]]
"""Requests keys from a broker; raises as `BrokerPool.send`."""

Route = Callable[[FanOut[K, V], tuple[K, ...]], Awaitable[None]]
"""Looks up the brokers for keys, and sets them as the routes of the fan-out."""

_FINAL_ERRORS: Final = (AuthenticationError, UnsupportedVersionError)


class AdminExecutor:
    """Runs the requests of one administrative call within its deadline.

    Errors that concern one key are in the results. Methods raise only if no request
    could be sent at all; see `BrokerPool`. `action` is the verb for messages, for
    example "describe".
    """

    def __init__(self, brokers: BrokerPool, deadline: Deadline) -> None:
        self.brokers = brokers
        self.deadline = deadline

    async def send(self, node_id: int, request: Any) -> Any:
        """Send a request to one broker, once; raises as `BrokerPool.send`."""
        return await self.brokers.send(node_id, request, self.deadline)

    async def send_to_any(self, request: Any) -> Any:
        """Send a request to any broker; raises as `BrokerPool.send_to_any`."""
        return await self.brokers.send_to_any(request, self.deadline)

    async def of_groups(
        self, group_ids: Iterable[str], action: str, send: Send[str, V]
    ) -> Results[str, V]:
        """Request groups from their coordinators."""
        fan_out: FanOut[str, V] = FanOut(
            group_ids, action, lambda key: f"group {key!r}"
        )

        async def route(fan_out: FanOut[str, V], keys: tuple[str, ...]) -> None:
            await self._route_by_coordinator(
                fan_out, CoordinatorKind.GROUP, {key: key for key in keys}
            )

        return await self._run(fan_out, route, send)

    async def of_partitions(
        self,
        partitions: Iterable[TopicPartition],
        action: str,
        send: Send[TopicPartition, V],
    ) -> Results[TopicPartition, V]:
        """Request partitions from their leaders."""
        fan_out: FanOut[TopicPartition, V] = FanOut(
            partitions, action, lambda key: f"{key.topic}-{key.partition}"
        )
        return await self._run(fan_out, self._route_by_leader, send)

    # Routing.

    async def _route_by_coordinator(
        self,
        fan_out: FanOut[K, V],
        kind: CoordinatorKind,
        keys: Mapping[str, K],
    ) -> None:
        found = await self.brokers.find_coordinators(kind, keys, self.deadline)
        for by_key, key in keys.items():
            code, message, broker = found.get(by_key, _MISSING_REPLY)
            if code == Code.NONE and broker is not None:
                fan_out.set_route(key, broker.node_id)
            else:
                fan_out.on_reply(key, Reply(code, message, None))

    async def _route_by_leader(
        self, fan_out: FanOut[TopicPartition, V], keys: tuple[TopicPartition, ...]
    ) -> None:
        names = (key.topic for key in keys)
        metadata = await self.brokers.request_topics(names, self.deadline)
        for key in keys:
            code, message, placed = find_partition(metadata.topics, key)
            leader = None if placed is None else placed.leader
            if leader is not None:
                fan_out.set_route(key, leader)
            elif placed is not None:
                fan_out.on_reply(key, Reply(Code.LEADER_NOT_AVAILABLE, None, None))
            else:
                fan_out.on_reply(key, Reply(code, message, None))

    # Requests.

    async def _run(
        self,
        fan_out: FanOut[K, V],
        route: Route[K, V],
        send: Send[K, V],
        part_of: Callable[[K], object] = lambda _: None,
    ) -> Results[K, V]:
        backoff = Backoff()
        with anyio.move_on_after(self.deadline.left):
            while not fan_out.finished:
                await self._look_up(fan_out, route)
                await self._send_all(fan_out, send, part_of)
                if not fan_out.finished:
                    await anyio.sleep(backoff.next_delay())
        if not fan_out.finished and not self.brokers.reached:
            # No broker was reached, so the keys have no errors of their own.
            raise self.brokers.no_response_error(self.deadline)
        fan_out.expire(self.deadline.timeout)
        return fan_out.results

    async def _look_up(self, fan_out: FanOut[K, V], route: Route[K, V]) -> None:
        keys = fan_out.without_route
        if not keys:
            return
        try:
            await route(fan_out, keys)
        except _FINAL_ERRORS:
            raise
        except ConnectionFailedError as error:
            if not self.brokers.reached:
                raise
            fan_out.on_connection_error(keys, error)

    async def _send_all(
        self, fan_out: FanOut[K, V], send: Send[K, V], part_of: Callable[[K], object]
    ) -> None:
        async with anyio.create_task_group() as tasks:
            for node_id, keys in fan_out.keys_by_node().items():
                parts: dict[object, list[K]] = {}
                for key in keys:
                    parts.setdefault(part_of(key), []).append(key)
                for part in map(tuple, parts.values()):
                    tasks.start_soon(self._send_one, fan_out, send, node_id, part)

    async def _send_one(
        self, fan_out: FanOut[K, V], send: Send[K, V], node_id: int, keys: tuple[K, ...]
    ) -> None:
        try:
            replies = await send(node_id, keys)
        except _FINAL_ERRORS as error:
            for key in keys:
                fan_out.fail(key, error)
        except Error as error:
            fan_out.on_connection_error(keys, error)
        else:
            for key in keys:
                if key in replies:
                    fan_out.on_reply(key, replies[key])
                else:
                    fan_out.fail(key, ProtocolError(_missing_reply(node_id, key)))


_MISSING_REPLY: Final = Reply(
    Code.UNKNOWN_SERVER_ERROR, "the response has no result for it", None
)


def _missing_reply(node_id: int, key: object) -> str:
    return f"the response of broker {node_id} has no result for {key}"
