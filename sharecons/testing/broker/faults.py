"""Fault injection: choose requests, and how they fail.

    broker.faults.on("ShareFetch", times=2).refuse("NOT_LEADER_OR_FOLLOWER")
    with broker.faults.on("ShareAcknowledge", node=1).stall():
        ...
    with broker.faults.hang(node=1):
        ...

A fault takes each request that matches it, until it has taken `times` of them or is
undone. Of several matching faults the oldest takes a request, and the others do not
count it.

If a function of the test raises in a fault, the connection is closed, the fault is
undone, and the broker raises the exception when it stops.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias

from sharecons.testing.broker import actions
from sharecons.testing.broker.actions import Action, Change, Responder
from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.codec import ErrorCode, Request
from sharecons.testing.broker.context import (
    ClientDisconnectedError,
    Context,
    PartitionFault,
)
from sharecons.testing.broker.error_responses import error_code
from sharecons.testing.broker.exchange import Exchange
from sharecons.testing.broker.fault_arguments import (
    check_choice,
    check_function,
    check_seconds,
)
from sharecons.testing.broker.hangs import Hang, Hangs, Run
from sharecons.testing.broker.signals import Signal

__all__ = ["Fault", "Faults", "Predicate", "RequestMatcher"]

Predicate: TypeAlias = Callable[[Request, Context], bool]
"""Returns whether a request matches."""

NAMES: Final = frozenset(api.name for api in APIS.values())
SHARE_SESSION_APIS: Final = ("ShareFetch", "ShareAcknowledge")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMatcher:
    """The requests that a fault is for; its methods add a fault for them."""

    api: str
    times: int | None
    after: int
    node: int | None
    client_id: str | None
    where: Predicate | None
    add: Callable[["RequestMatcher", Action], "Fault"]

    def cut(self, *, after: bool = False) -> "Fault":
        """Close the connection: `after` handling the request, or instead of it."""
        return self.add(self, partial(actions.cut, after=after))

    def hang_up(self) -> "Fault":
        """Handle the request, send the response, and close the connection."""
        return self.add(self, actions.hang_up)

    def lose(self) -> "Fault":
        """Handle the request, and send no response."""
        return self.add(self, actions.lose)

    def stall(self, seconds: float = math.inf) -> "Fault":
        """Hold the request for a time or until the fault is undone; then respond."""
        check_seconds("seconds", seconds)
        return self.add(self, partial(actions.stall, seconds=seconds))

    def delay(self, seconds: float) -> "Fault":
        """Handle the request immediately, and send the response later."""
        check_seconds("seconds", seconds)
        return self.add(self, partial(actions.delay, seconds=seconds))

    def refuse(self, code: ErrorCode | int | str, *, each: bool = False) -> "Fault":
        """Respond with an error, given by its number or its name in Kafka.

        It is set at the top of the response, if that has an error field; else, or with
        `each`, in each topic, partition or group of the request.
        """
        refusing = partial(actions.refuse, code=error_code(code), each=each)
        return self.add(self, refusing)

    def refuse_partitions(
        self,
        code: ErrorCode | int | str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        leader: Callable[[], tuple[int, int]] | None = None,
    ) -> "Fault":
        """Handle a ShareFetch or ShareAcknowledge with an error for its partitions.

        The share session continues, and nothing is acquired from these partitions or
        acknowledged.

        Args:
            topic: the topic of the partitions; None for every topic.
            partition: the partition; None for every partition.
            leader: returns the node id and the epoch of the leader in the response. By
                default it is the actual leader, after an error for a moved leader.

        Raises:
            ValueError: other APIs have no share session.
        """
        if self.api not in SHARE_SESSION_APIS:
            raise ValueError(f"{self.api} has no share session")
        fault = PartitionFault(error_code(code), topic, partition, leader)
        return self.add(self, partial(actions.refuse_partitions, fault=fault))

    def throttle(self, seconds: float) -> "Fault":
        """Respond with a throttle time, during which the broker reads nothing."""
        check_seconds("seconds", seconds)
        return self.add(self, partial(actions.throttle, seconds=seconds))

    def respond_twice(self) -> "Fault":
        """Send the response twice."""
        return self.add(self, actions.respond_twice)

    def respond(self, by: Responder) -> "Fault":
        """Respond with the fields that `by(request, context)` returns."""
        check_function("respond", by)
        return self.add(self, partial(actions.respond, by=by))

    def change(self, by: Change) -> "Fault":
        """Handle the request, and send the fields that `by(response, context)` returns.

        The response is a mapping with the names of Kafka's message definitions. `by`
        can be an async function.
        """
        check_function("change", by)
        return self.add(self, partial(actions.change, by=by))

    def corrupt(self, change: Callable[[bytes], bytes] = actions.garble) -> "Fault":
        """Change the bytes of the response; by default all of them."""
        check_function("corrupt", change)
        return self.add(self, partial(actions.corrupt, change=change))

    def matches(self, exchange: Exchange) -> bool:
        """Return whether a request matches."""
        context = exchange.context
        return (
            self.api == exchange.api
            and self.node in (None, context.node_id)
            and self.client_id in (None, context.header.client_id)
            and (self.where is None or self.where(exchange.request, context))
        )


@dataclass(slots=True, eq=False)
class Fault:
    """An active fault. Leaving its `with` block undoes it."""

    matcher: RequestMatcher
    action: Action
    remove: Callable[["Fault"], None]
    matched: int = 0
    """The number of matching requests, including requests that `after` skips."""
    undone: Signal = field(default_factory=Signal)

    @property
    def hits(self) -> int:
        """The number of requests that it has taken."""
        return max(0, self.matched - self.matcher.after)

    @property
    def is_exhausted(self) -> bool:
        """True if it has taken as many requests as it should."""
        return self.matcher.times is not None and self.hits >= self.matcher.times

    def take(self, exchange: Exchange) -> bool:
        """Count a matching request; return whether the fault takes it."""
        if self.is_exhausted or not self.matcher.matches(exchange):
            return False
        self.matched += 1
        return self.matched > self.matcher.after

    def undo(self) -> None:
        """Take no more requests, and continue the held ones."""
        self.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


class Faults:
    """The faults of a cluster. Can be used from any thread."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._faults: list[Fault] = []
        self._error: Exception | None = None
        self.hangs: Final = Hangs(run)

    def on(
        self,
        api: str,
        *,
        times: int | None = 1,
        after: int = 0,
        node: int | None = None,
        client_id: str | None = None,
        where: Predicate | None = None,
    ) -> RequestMatcher:
        """Choose requests: the first `times` of an API, or all with None.

        Args:
            api: the name in Kafka's message definitions: ShareFetch.
            after: the number of matching requests to skip first.
            node: the broker that receives the request; None for any.
            client_id: the client id of the sender; None for any.
            where: `where(request, context)` returns whether a request matches.

        Raises:
            ValueError: there is no such API, or a number is out of range.
            TypeError: an argument has a wrong type.
            LookupError: there is no such broker.
        """
        if api not in NAMES:
            raise ValueError(
                f"unknown API {api!r}; known are {', '.join(sorted(NAMES))}"
            )
        check_choice(times=times, after=after, where=where)
        self.hangs.check_exists(node)
        return RequestMatcher(
            api=api,
            times=times,
            after=after,
            node=node,
            client_id=client_id,
            where=where,
            add=self._add,
        )

    def hang(self, node: int | None = None) -> Hang:
        """Let a broker hang, as SIGSTOP does to a process; all brokers with None.

        Clients can connect and send, but the broker reads and sends nothing, and closes
        no connection, until the end of the `with` block or `undo()`.

        Raises:
            LookupError: there is no such broker.
        """
        return self.hangs.begin(node)

    @property
    def active(self) -> list[Fault]:
        """The faults that still take requests."""
        return list(self._faults)

    def clear(self) -> None:
        """Undo all faults."""
        self.hangs.clear()
        for fault in self.active:
            fault.undo()

    async def respond(self, exchange: Exchange) -> None:
        """Respond to a request, or apply the first fault that takes it."""
        for fault in self.active:
            try:
                if not fault.take(exchange):
                    continue
                if fault.is_exhausted:
                    self._faults.remove(fault)
                await fault.action(exchange, fault.undone)
            except ClientDisconnectedError:
                raise
            except Exception as error:
                self._fail(fault, error)
                raise
            return
        await exchange.respond()

    def raise_error(self) -> None:
        """Raise the first exception of a function of the test, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _fail(self, fault: Fault, error: Exception) -> None:
        """Keep an exception that a fault has raised, and undo the fault."""
        if fault in self._faults:
            self._faults.remove(fault)
        error.add_note(f"raised in a fault of {fault.matcher.api}")
        self._error = self._error or error

    def _add(self, matcher: RequestMatcher, action: Action) -> Fault:
        fault = Fault(matcher, action, self._remove)
        self._run(lambda: self._faults.append(fault))
        return fault

    def _remove(self, fault: Fault) -> None:
        def remove() -> None:
            if fault in self._faults:
                self._faults.remove(fault)
            fault.undone.notify()

        self._run(remove)
