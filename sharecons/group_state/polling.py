"""The only loop that collects: at intervals, for the exporter and the dashboard."""

import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

import anyio

from sharecons.errors import Error
from sharecons.group_state.collector import CollectedGroups
from sharecons.group_state.reachability import Reachability

__all__ = ["RECOVERED", "Collecting", "Receiver", "collect_repeatedly"]

Report = Callable[[str], None]

MAX_LINES: Final = 5
"""Lines of errors per collection, as many partitions can fail for one reason."""

RECOVERED: Final = "everything can be read again"
"""The line after the last error."""

C = TypeVar("C", bound=CollectedGroups)
C_co = TypeVar("C_co", bound=CollectedGroups, covariant=True)
R = TypeVar("R", bound=CollectedGroups, contravariant=True)


class Collecting(Protocol[C_co]):
    """The source that is read at each interval."""

    async def collect(self) -> C_co:
        """Read everything once; raises nothing. Can be cancelled at any time."""
        ...

    def unreachable(self, error: Error) -> C_co:
        """Return the collection of a cluster that does not respond."""
        ...


class Receiver(Protocol[R]):
    """Shows what was collected.

    Attributes:
        reached: True while a broker responds.
    """

    @property
    def reached(self) -> bool: ...

    def update(self, collected: R, /) -> None:
        """Replace the collection by a newer one."""

    def broker_responded(self) -> None:
        """Record that a broker responds, before a collection has ended."""


async def collect_repeatedly(
    collector: Collecting[C],
    reachability: Reachability,
    receiver: Receiver[C],
    interval: float,
    report: Report,
) -> None:
    """Collect every `interval` seconds until cancelled, even after errors.

    When no broker responds, say so immediately. When one responds again, collect
    immediately. Call `report` with what cannot be read, when that changes.
    """
    messages: tuple[str, ...] = ()
    while True:
        began = time.monotonic()
        collected = await _collect(collector, reachability, receiver)
        receiver.update(collected)
        messages = _report_errors(messages, collected, report)
        if collected.reached:
            rest = max(0.0, began + interval - time.monotonic())
            with anyio.move_on_after(rest):
                collected = collector.unreachable(await reachability.wait_until_lost())
                receiver.update(collected)
                messages = _report_errors(messages, collected, report)
        if not collected.reached:
            await reachability.wait_until_back()


async def _collect(
    collector: Collecting[C], reachability: Reachability, receiver: Receiver[C]
) -> C:
    """Collect once, or until no broker responds."""

    async def report_response() -> None:
        # A collection can take ten seconds, in which an alert would fire.
        if await reachability.responds():
            receiver.broker_responded()

    ended: list[C] = []

    async def watch() -> None:
        ended.append(collector.unreachable(await reachability.wait_until_lost()))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        if not receiver.reached:
            tasks.start_soon(report_response)
        ended.append(await collector.collect())
        tasks.cancel_scope.cancel()
    return ended[0]


def _report_errors(
    before: tuple[str, ...], collected: CollectedGroups, report: Report
) -> tuple[str, ...]:
    new = [each for each in collected.error_messages if each not in before]
    for complaint in new[:MAX_LINES]:
        report(complaint)
    if len(new) > MAX_LINES:
        report(f"and {len(new) - MAX_LINES} more")
    if before and not collected.error_messages:
        report(RECOVERED)
    return collected.error_messages
