"""The calls of handlers that take long, for the conditions of a worker."""

from collections.abc import Iterable, Iterator

from sharecons.worker.conditions import RunningCall
from sharecons.worker.error_text import repr_of
from sharecons.worker.machine.item import Call
from sharecons.worker.positions import items_text
from sharecons.worker.routes import Routes

__all__ = ["long_calls"]


def long_calls(
    now: float, limit: float | None, running: Iterable[Call], routes: Routes
) -> Iterator[RunningCall]:
    """Return the calls that have run for longer than `limit` seconds; None for none.

    Threads of cancelled calls that go on are among them.
    """
    if limit is None:
        return
    for call in running:
        if call.began < now - limit:
            settings = call.queue.settings
            yield RunningCall(
                now - call.began,
                routes.of_settings(settings).name,
                items_text(call.items),
                False,
                settings.concurrency,
            )
    for route in routes.routes:
        for thread in route.call.threads.abandoned if route.call.threads else ():
            if thread.began < now - limit:
                yield RunningCall(
                    now - thread.began,
                    route.name,
                    repr_of(thread.argument),
                    True,
                    route.settings.concurrency,
                )
