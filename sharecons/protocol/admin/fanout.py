"""An errand: one question about many things, each asked of the broker that knows it.

Rule 1: what is asked again, whom it is asked of, and when one gives up for which
reason is decided here.
Rule 2: this file meets no broker and no clock; who carries the errand out tells it
what was heard, and when time is up.

Theory of operation
-------------------
Every key (a group, a partition, a broker) is pending until it is settled. A pending
key has a route, the node that is to be asked, or has to be looked up. A reply with a
code that passes (a coordinator that moved, is loading, or is not there yet; a leader
that moved) leaves its key pending, and takes its route if the code says that it was
wrong; so does a connection that failed. Any other reply settles the key with a value
or an error. When time is up, what is pending is settled with what was last heard of it.
"""

import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Generic, TypeVar, final

from sharecons._record import TopicPartition
from sharecons.errors import Error, ProtocolError, RequestTimedOutError
from sharecons.protocol.admin.broker_errors import refusal
from sharecons.protocol.admin.models import Topic, TopicPartitionInfo
from sharecons.protocol.admin.requests import PartialReply, Reply
from sharecons.protocol.admin.results import Outcome, Results
from sharecons.protocol.codes import Code, code_name

__all__ = ["PASSING", "FanOut", "Passing", "outcomes", "parts", "place", "worst_of"]

K = TypeVar("K")
V = TypeVar("V")
P = TypeVar("P")


class Passing(enum.Enum):
    """What to do about a code that will pass."""

    AGAIN = enum.auto()
    """Ask the same broker again."""
    ELSEWHERE = enum.auto()
    """Look up again whom to ask."""


PASSING: Final[Mapping[int, Passing]] = {
    Code.LEADER_NOT_AVAILABLE: Passing.ELSEWHERE,
    Code.NOT_LEADER_OR_FOLLOWER: Passing.ELSEWHERE,
    Code.FENCED_LEADER_EPOCH: Passing.ELSEWHERE,
    Code.UNKNOWN_LEADER_EPOCH: Passing.ELSEWHERE,
    Code.KAFKA_STORAGE_ERROR: Passing.ELSEWHERE,
    Code.BROKER_NOT_AVAILABLE: Passing.ELSEWHERE,
    Code.REPLICA_NOT_AVAILABLE: Passing.ELSEWHERE,
    Code.COORDINATOR_NOT_AVAILABLE: Passing.ELSEWHERE,
    Code.NOT_COORDINATOR: Passing.ELSEWHERE,
    Code.NOT_CONTROLLER: Passing.ELSEWHERE,
    Code.COORDINATOR_LOAD_IN_PROGRESS: Passing.AGAIN,
    Code.REQUEST_TIMED_OUT: Passing.AGAIN,
    Code.NETWORK_EXCEPTION: Passing.AGAIN,
    Code.OFFSET_NOT_AVAILABLE: Passing.AGAIN,
    Code.UNSTABLE_OFFSET_COMMIT: Passing.AGAIN,
    Code.THROTTLING_QUOTA_EXCEEDED: Passing.AGAIN,
}
"""Codes after which the same question may have another answer."""


def worst_of(
    replies: Mapping[P, Reply[V]], unknown: Collection[int] = ()
) -> Reply[Mapping[P, Reply[V]]]:
    """Make one reply of a whole's parts: it passes if the code of some part does.

    `unknown` are codes that pass too, since who gave them has yet to learn of it.
    """
    for reply in replies.values():
        if reply.code in PASSING:
            return PartialReply(reply.code, reply.message, replies)
        if reply.code in unknown:
            heard = code_name(reply.code)
            loading = Code.COORDINATOR_LOAD_IN_PROGRESS
            return PartialReply(loading, heard, replies)
    return Reply(Code.NONE, None, replies)


def outcomes(
    replies: Mapping[P, Reply[V]], doing: str, about: Callable[[P], str]
) -> Results[P, V]:
    """Make outcomes of the parts' replies; None is a value too."""
    return Results(
        {
            part: Outcome(reply.value)
            if reply.code == Code.NONE
            else Outcome(error=refusal(doing, about(part), reply.code, reply.message))
            for part, reply in replies.items()
        }
    )


def parts(
    whole: Outcome[Mapping[P, Reply[V]]],
    keys: Iterable[P],
    doing: str,
    about: Callable[[P], str],
) -> Results[P, V]:
    """Make outcomes of a whole's parts: its one error is that of each of them."""
    if whole.error is not None:
        return Results({key: Outcome(error=whole.error) for key in keys})
    told = outcomes(whole.value, doing, about)
    silent = ProtocolError(f"cannot {doing}: the answer leaves some of it out")
    return Results({key: told.get(key, Outcome(error=silent)) for key in keys})


def place(
    topics: Mapping[str, Reply[Topic]], partition: TopicPartition
) -> Reply[TopicPartitionInfo]:
    """Find a partition among topics that were described."""
    name, number = partition
    code, message, topic = topics.get(name, _NO_TOPIC)
    if code != Code.NONE or topic is None:
        return Reply(code, message, None)
    if number not in topic.partitions:
        numbers = f"the topic has partitions 0 to {len(topic.partitions) - 1}"
        return Reply(Code.UNKNOWN_TOPIC_OR_PARTITION, numbers, None)
    return Reply(code, None, topic.partitions[number])


_NO_TOPIC: Final[Reply[Topic]] = Reply(Code.UNKNOWN_TOPIC_OR_PARTITION, None, None)


@final
class FanOut(Generic[K, V]):
    """The state of one question about many things.

    Args:
        keys: what is asked about; each is asked about once.
        about: says of a key what it is, for messages ("group 'billing'").
        doing: what is tried, for messages ("describe").
    """

    def __init__(
        self, keys: Iterable[K], doing: str, about: Callable[[K], str]
    ) -> None:
        self._keys = tuple(dict.fromkeys(keys))
        self._doing = doing
        self._about = about
        self._pending = dict.fromkeys(self._keys)
        self._routes: dict[K, int] = {}
        self._heard: dict[K, str] = {}
        self._failures: dict[K, Error] = {}
        self._values: dict[K, V] = {}
        self._settled: dict[K, Outcome[V]] = {}

    @property
    def finished(self) -> bool:
        """True once each key is settled."""
        return not self._pending

    @property
    def results(self) -> Results[K, V]:
        """What became of the keys, in the order of asking."""
        keys = (key for key in self._keys if key in self._settled)
        return Results({key: self._settled[key] for key in keys})

    # Whom to ask.

    @property
    def unrouted(self) -> tuple[K, ...]:
        """Pending keys of which nobody knows whom to ask."""
        return tuple(key for key in self._pending if key not in self._routes)

    def by_node(self) -> dict[int, tuple[K, ...]]:
        """Pending keys by the node that is to be asked."""
        nodes: dict[int, list[K]] = {}
        for key in self._pending:
            if key in self._routes:
                nodes.setdefault(self._routes[key], []).append(key)
        return {node: tuple(keys) for node, keys in nodes.items()}

    def routed(self, key: K, node_id: int) -> None:
        """Somebody said whom to ask."""
        self._routes[key] = node_id

    # What was heard.

    def replied(self, key: K, reply: Reply[V]) -> None:
        """A broker told of a key."""
        if key not in self._pending:
            return
        passing = PASSING.get(reply.code)
        if passing is not None:
            self._passed(key, reply, passing)
        elif reply.code == Code.NONE:
            self._settle(key, Outcome(reply.value))
        else:
            self.failed(
                key, refusal(self._doing, self._about(key), reply.code, reply.message)
            )

    def failed(self, key: K, error: Error) -> None:
        """There is an error for this key, for good."""
        self._settle(key, Outcome(error=error))

    def lost(self, keys: Iterable[K], error: Error) -> None:
        """The broker to be asked could not be asked, or did not answer."""
        for key in keys:
            self._routes.pop(key, None)
            self._heard[key] = str(error)
            self._failures[key] = error

    def dropped(self, key: K) -> None:
        """There is nothing to ask about any more: it is left out of the results."""
        self._pending.pop(key, None)

    def expired(self, timeout: float) -> None:
        """Time is up: what is pending is settled with what was last heard."""
        for key in tuple(self._pending):
            if key in self._values:
                self._settle(key, Outcome(self._values[key]))
            else:
                self._settle(key, Outcome(error=self._too_late(key, timeout)))

    def _passed(self, key: K, reply: Reply[V], passing: Passing) -> None:
        if passing is Passing.ELSEWHERE:
            self._routes.pop(key, None)
        self._failures.pop(key, None)
        self._heard[key] = code_name(reply.code)
        if reply.message:
            self._heard[key] += f" ({reply.message})"
        if isinstance(reply, PartialReply) and reply.value is not None:
            # Of many parts some may be there: better those than none.
            self._values[key] = reply.value

    def _too_late(self, key: K, timeout: float) -> Error:
        text = f"cannot {self._doing} {self._about(key)} within {timeout:g} s"
        heard = self._heard.get(key)
        text += f"; last heard: {heard}" if heard else "; no answer"
        error = RequestTimedOutError(text)
        error.__cause__ = self._failures.get(key)
        return error

    def _settle(self, key: K, outcome: Outcome[V]) -> None:
        self._pending.pop(key, None)
        self._settled[key] = outcome
