"""What the brokers are told to do wrong: which requests, how often, and what.

    broker.faults.on("ShareFetch", times=2).refuse("NOT_LEADER_OR_FOLLOWER")
    with broker.faults.on("ShareAcknowledge", node=1).stall():
        ...

A fault waits for the requests that it is meant for and takes each in turn, until it
has had as many as it was told, or is undone. Of several the eldest takes a request, and
the others do not see it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias

from sharecons.testing.broker import actions
from sharecons.testing.broker.actions import Action, Answering
from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.codec import ErrorCode, Request
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.exchange import Exchange
from sharecons.testing.broker.refusals import error_code
from sharecons.testing.broker.signals import Signal

__all__ = ["Fault", "Faults", "RequestMatcher", "Where"]

Where: TypeAlias = Callable[[Request, Context], bool]
"""Tells whether a request is meant."""

Run: TypeAlias = Callable[[Callable[[], None]], None]
"""Runs something where the brokers run, from any thread."""

NAMES: Final = frozenset(api.name for api in APIS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMatcher:
    """The requests that are meant; its verbs say what is to become of them."""

    api: str
    times: int | None
    after: int
    node: int | None
    client_id: str | None
    where: Where | None
    add: Callable[["RequestMatcher", Action], "Fault"]

    def cut(self, *, after: bool = False) -> "Fault":
        """Close the connection; `after` doing what was asked, or without it."""
        return self.add(self, partial(actions.cut, after=after))

    def lose(self) -> "Fault":
        """Do what was asked, and never answer."""
        return self.add(self, actions.lose)

    def stall(self, seconds: float = math.inf) -> "Fault":
        """Let the request lie for a time, or until it is undone; then answer it."""
        return self.add(self, partial(actions.stall, seconds=seconds))

    def delay(self, seconds: float) -> "Fault":
        """Do what was asked at once, and answer later."""
        return self.add(self, partial(actions.delay, seconds=seconds))

    def refuse(self, code: ErrorCode | int | str, *, each: bool = False) -> "Fault":
        """Answer with an error, by its number or its name in Kafka.

        It is the whole answer's where that has an error; else, or with `each`, that
        of each topic, partition or group that was asked for.
        """
        refusing = partial(actions.refuse, code=error_code(code), each=each)
        return self.add(self, refusing)

    def throttle(self, seconds: float) -> "Fault":
        """Answer, and ask for a pause that the broker itself keeps."""
        return self.add(self, partial(actions.throttle, seconds=seconds))

    def answer_twice(self) -> "Fault":
        """Send the answer a second time."""
        return self.add(self, actions.answer_twice)

    def respond(self, by: Answering) -> "Fault":
        """Have the test answer: `by(request, context)` gives the answer's fields."""
        return self.add(self, partial(actions.respond, by=by))

    def corrupt(self, change: Callable[[bytes], bytes] = actions.garble) -> "Fault":
        """Change the answer's bytes, all of them if not told how."""
        return self.add(self, partial(actions.corrupt, change=change))

    def takes(self, exchange: Exchange) -> bool:
        """Tell whether a request is one of those that are meant."""
        context = exchange.context
        return (
            self.api == exchange.api
            and self.node in (None, context.node_id)
            and self.client_id in (None, context.header.client_id)
            and (self.where is None or self.where(exchange.request, context))
        )


@dataclass(slots=True, eq=False)
class Fault:
    """A trap that was set. Leaving its `with` block undoes it."""

    trap: RequestMatcher
    action: Action
    remove: Callable[["Fault"], None]
    seen: int = 0
    """How many requests were meant, those passed over by `after` among them."""
    undone: Signal = field(default_factory=Signal)

    @property
    def hits(self) -> int:
        """How many requests it has taken."""
        return max(0, self.seen - self.trap.after)

    @property
    def spent(self) -> bool:
        """Whether it has taken all that it was to take."""
        return self.trap.times is not None and self.hits >= self.trap.times

    def hit(self, exchange: Exchange) -> bool:
        """Count a request; tells whether this takes it."""
        if self.spent or not self.trap.takes(exchange):
            return False
        self.seen += 1
        return self.seen > self.trap.after

    def undo(self) -> None:
        """Take no more requests, and go on with those that are held up."""
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
    """All that is to go wrong. May be used from any thread."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._faults: list[Fault] = []

    def on(
        self,
        api: str,
        *,
        times: int | None = 1,
        after: int = 0,
        node: int | None = None,
        client_id: str | None = None,
        where: Where | None = None,
    ) -> RequestMatcher:
        """Choose requests: the first `times` of an API, or all with None.

        Args:
            api: as Kafka's messages spell it: ShareFetch.
            after: how many to leave alone first.
            node: the broker that is asked; any if not given.
            client_id: of who asks.
            where: `where(request, context)` tells whether a request is meant.

        Raises:
            ValueError: there is no such API.
        """
        if api not in NAMES:
            raise ValueError(f"no API {api!r}; there are {', '.join(sorted(NAMES))}")
        return RequestMatcher(
            api=api,
            times=times,
            after=after,
            node=node,
            client_id=client_id,
            where=where,
            add=self._add,
        )

    @property
    def waiting(self) -> list[Fault]:
        """Those that take the next request that is meant for them."""
        return list(self._faults)

    def clear(self) -> None:
        """Undo all faults."""
        for fault in self.waiting:
            fault.undo()

    async def answer(self, exchange: Exchange) -> None:
        """Answer a request, or do with it what a fault says."""
        for fault in self.waiting:
            if fault.hit(exchange):
                if fault.spent:
                    self._faults.remove(fault)
                await fault.action(exchange, fault.undone)
                return
        await exchange.answer()

    def _add(self, trap: RequestMatcher, action: Action) -> Fault:
        fault = Fault(trap, action, self._remove)
        self._run(lambda: self._faults.append(fault))
        return fault

    def _remove(self, fault: Fault) -> None:
        def remove() -> None:
            if fault in self._faults:
                self._faults.remove(fault)
            fault.undone.ring()

        self._run(remove)
