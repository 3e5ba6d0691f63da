"""A fan-out: a request for many keys, each sent to the broker responsible for it.

Rule 1: which keys are requested again, from which broker, and with which error they
end, is decided here.
Rule 2: there is no I/O and no clock here; `AdminExecutor` sends the requests and
reports replies, connection errors and the deadline.

Theory of operation
-------------------
A key (a group, a partition, a broker) is pending until it has an outcome. A pending key
has a route, which is the node that receives its requests, or its route must be looked
up. A retriable reply (coordinator moved, loading or not available; leader moved) leaves
its key pending. It drops the route if the code says that the node was wrong, as does a
failed connection. Any other reply ends the key with a value or an error. At the
deadline, pending keys end with the last error received for them.
"""

import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Generic, TypeVar, final

from sharecons._record import TopicPartition
from sharecons.errors import Error, ProtocolError, RequestTimedOutError
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.models import Topic, TopicPartitionInfo
from sharecons.protocol.admin.requests import PartialReply, Reply
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code, code_name

__all__ = [
    "RETRIABLE",
    "FanOut",
    "RetryRoute",
    "find_partition",
    "merge_replies",
    "part_results",
    "results_of",
]

K = TypeVar("K")
V = TypeVar("V")
P = TypeVar("P")


class RetryRoute(enum.Enum):
    """Where to send the next try after a retriable error."""

    SAME = enum.auto()
    """To the same broker."""
    LOOK_UP = enum.auto()
    """To the broker that a new lookup returns."""


RETRIABLE: Final[Mapping[int, RetryRoute]] = {
    Code.LEADER_NOT_AVAILABLE: RetryRoute.LOOK_UP,
    Code.NOT_LEADER_OR_FOLLOWER: RetryRoute.LOOK_UP,
    Code.FENCED_LEADER_EPOCH: RetryRoute.LOOK_UP,
    Code.UNKNOWN_LEADER_EPOCH: RetryRoute.LOOK_UP,
    Code.KAFKA_STORAGE_ERROR: RetryRoute.LOOK_UP,
    Code.BROKER_NOT_AVAILABLE: RetryRoute.LOOK_UP,
    Code.REPLICA_NOT_AVAILABLE: RetryRoute.LOOK_UP,
    Code.COORDINATOR_NOT_AVAILABLE: RetryRoute.LOOK_UP,
    Code.NOT_COORDINATOR: RetryRoute.LOOK_UP,
    Code.NOT_CONTROLLER: RetryRoute.LOOK_UP,
    Code.COORDINATOR_LOAD_IN_PROGRESS: RetryRoute.SAME,
    Code.REQUEST_TIMED_OUT: RetryRoute.SAME,
    Code.NETWORK_EXCEPTION: RetryRoute.SAME,
    Code.OFFSET_NOT_AVAILABLE: RetryRoute.SAME,
    Code.UNSTABLE_OFFSET_COMMIT: RetryRoute.SAME,
    Code.THROTTLING_QUOTA_EXCEEDED: RetryRoute.SAME,
}
"""Retriable error codes."""


def merge_replies(
    replies: Mapping[P, Reply[V]], also_retriable: Collection[int] = ()
) -> Reply[Mapping[P, Reply[V]]]:
    """Merge the replies of parts into one, retriable if any of them is.

    Codes in `also_retriable` are retriable too: the broker might lack new metadata.
    """
    for reply in replies.values():
        if reply.code in RETRIABLE:
            return PartialReply(reply.code, reply.message, replies)
        if reply.code in also_retriable:
            name = code_name(reply.code)
            loading = Code.COORDINATOR_LOAD_IN_PROGRESS
            return PartialReply(loading, name, replies)
    return Reply(Code.NONE, None, replies)


def results_of(
    replies: Mapping[P, Reply[V]], action: str, name_of: Callable[[P], str]
) -> Results[P, V]:
    """Convert replies to results; None is a valid value."""
    return Results(
        {
            part: Result(reply.value)
            if reply.code == Code.NONE
            else Result(
                error=broker_error(action, name_of(part), reply.code, reply.message)
            )
            for part, reply in replies.items()
        }
    )


def part_results(
    whole: Result[Mapping[P, Reply[V]]],
    keys: Iterable[P],
    action: str,
    name_of: Callable[[P], str],
) -> Results[P, V]:
    """Return the results of parts; an error of the whole is the error of each."""
    if whole.error is not None:
        return Results({key: Result(error=whole.error) for key in keys})
    replied = results_of(whole.value, action, name_of)
    missing = ProtocolError(f"cannot {action}: the response is incomplete")
    return Results({key: replied.get(key, Result(error=missing)) for key in keys})


def find_partition(
    topics: Mapping[str, Reply[Topic]], partition: TopicPartition
) -> Reply[TopicPartitionInfo]:
    """Return a partition of described topics, or the error code."""
    name, number = partition
    code, message, topic = topics.get(name, _UNKNOWN_TOPIC)
    if code != Code.NONE or topic is None:
        return Reply(code, message, None)
    if number not in topic.partitions:
        numbers = f"the topic has partitions 0 to {len(topic.partitions) - 1}"
        return Reply(Code.UNKNOWN_TOPIC_OR_PARTITION, numbers, None)
    return Reply(code, None, topic.partitions[number])


_UNKNOWN_TOPIC: Final[Reply[Topic]] = Reply(Code.UNKNOWN_TOPIC_OR_PARTITION, None, None)


@final
class FanOut(Generic[K, V]):
    """The state of one request for many keys.

    Args:
        keys: duplicates are dropped.
        action: the request's verb, for messages ("describe").
        name_of: returns the name of a key for messages ("group 'billing'").
    """

    def __init__(
        self, keys: Iterable[K], action: str, name_of: Callable[[K], str]
    ) -> None:
        self._keys = tuple(dict.fromkeys(keys))
        self._action = action
        self._name_of = name_of
        self._pending = dict.fromkeys(self._keys)
        self._routes: dict[K, int] = {}
        self._last_errors: dict[K, str] = {}
        self._causes: dict[K, Error] = {}
        self._partial_values: dict[K, V] = {}
        self._outcomes: dict[K, Result[V]] = {}

    @property
    def finished(self) -> bool:
        """True once each key has an outcome."""
        return not self._pending

    @property
    def results(self) -> Results[K, V]:
        """The outcomes of the keys, in the order of `keys`."""
        keys = (key for key in self._keys if key in self._outcomes)
        return Results({key: self._outcomes[key] for key in keys})

    # Routes.

    @property
    def without_route(self) -> tuple[K, ...]:
        """Pending keys whose node must be looked up."""
        return tuple(key for key in self._pending if key not in self._routes)

    def keys_by_node(self) -> dict[int, tuple[K, ...]]:
        """Return pending keys that have a route, by node."""
        nodes: dict[int, list[K]] = {}
        for key in self._pending:
            if key in self._routes:
                nodes.setdefault(self._routes[key], []).append(key)
        return {node: tuple(keys) for node, keys in nodes.items()}

    def set_route(self, key: K, node_id: int) -> None:
        """Set the node that receives the requests for a key."""
        self._routes[key] = node_id

    # Replies.

    def on_reply(self, key: K, reply: Reply[V]) -> None:
        """Handle the reply for a key."""
        if key not in self._pending:
            return
        route = RETRIABLE.get(reply.code)
        if route is not None:
            self._retry(key, reply, route)
        elif reply.code == Code.NONE:
            self._finish(key, Result(reply.value))
        else:
            self.fail(
                key,
                broker_error(
                    self._action, self._name_of(key), reply.code, reply.message
                ),
            )

    def fail(self, key: K, error: Error) -> None:
        """End a key with an error."""
        self._finish(key, Result(error=error))

    def on_connection_error(self, keys: Iterable[K], error: Error) -> None:
        """Handle a connection error: keep the keys pending and drop their routes."""
        for key in keys:
            self._routes.pop(key, None)
            self._last_errors[key] = str(error)
            self._causes[key] = error

    def drop(self, key: K) -> None:
        """Leave a key out of the results."""
        self._pending.pop(key, None)

    def expire(self, timeout: float) -> None:
        """End pending keys at the deadline, with their partial value or last error."""
        for key in tuple(self._pending):
            if key in self._partial_values:
                self._finish(key, Result(self._partial_values[key]))
            else:
                self._finish(key, Result(error=self._timeout_error(key, timeout)))

    def _retry(self, key: K, reply: Reply[V], route: RetryRoute) -> None:
        if route is RetryRoute.LOOK_UP:
            self._routes.pop(key, None)
        self._causes.pop(key, None)
        self._last_errors[key] = code_name(reply.code)
        if reply.message:
            self._last_errors[key] += f" ({reply.message})"
        if isinstance(reply, PartialReply) and reply.value is not None:
            # At the deadline, some parts are better than none.
            self._partial_values[key] = reply.value

    def _timeout_error(self, key: K, timeout: float) -> Error:
        text = f"cannot {self._action} {self._name_of(key)} within {timeout:g} s"
        last_error = self._last_errors.get(key)
        text += f"; last error: {last_error}" if last_error else "; no response"
        error = RequestTimedOutError(text)
        error.__cause__ = self._causes.get(key)
        return error

    def _finish(self, key: K, outcome: Result[V]) -> None:
        self._pending.pop(key, None)
        self._outcomes[key] = outcome
