"""Waiting for one of several changes, or until a time."""

from collections.abc import Iterable

import anyio

__all__ = ["Signal", "wait_for_any"]


class Signal:
    """Wakes its waiters when something has changed; they check the state again."""

    def __init__(self) -> None:
        self._events: set[anyio.Event] = set()

    def notify(self) -> None:
        events, self._events = self._events, set()
        for event in events:
            event.set()

    def add(self, event: anyio.Event) -> None:
        self._events.add(event)

    def discard(self, event: anyio.Event) -> None:
        self._events.discard(event)


async def wait_for_any(signals: Iterable[Signal], until: float) -> None:
    """Wait until one of the signals is notified, or until a time of anyio's clock."""
    event = anyio.Event()
    signals = list(signals)
    for signal in signals:
        signal.add(event)
    try:
        with anyio.CancelScope(deadline=until):
            await event.wait()
    finally:
        for signal in signals:
            signal.discard(event)
