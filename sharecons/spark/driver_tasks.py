"""Tasks beside a running member: they watch its ledger's owner and Spark, and trim.

They run in the member's event loop, and the ledger's store in worker threads.
"""

import os
from collections.abc import Callable
from typing import Final

import anyio
from anyio.to_thread import run_sync

from sharecons.log import get_logger
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent
from sharecons.spark.errors import LedgerError, LedgerLostError, LedgerTakenError
from sharecons.spark.ledger import Ledger, describe_ranges
from sharecons.spark.ledger_store import LedgerStore

__all__ = ["keep_trimming", "report_end", "watch_ownership", "watch_parent"]

LEDGER_CHECK_INTERVAL: Final = 5.0
PARENT_CHECK_INTERVAL: Final = 1.0

_log = get_logger(__name__)


async def watch_ownership(
    store: LedgerStore, fail: Callable[[LedgerError], None]
) -> None:
    """Call `fail` and return when the ledger was deleted, or has another driver.

    On a storage without locks both run until the older one notices. They share a member
    id, so each removes the other from the group again and again.
    """
    while True:
        await anyio.sleep(LEDGER_CHECK_INTERVAL)
        try:
            await run_sync(store.check_ownership)
        except (LedgerTakenError, LedgerLostError) as error:
            fail(error)
            return
        except LedgerError as error:
            # Harmless: the next write notices it.
            _log.warning("the ledger could not be checked", reason=str(error))


async def keep_trimming(
    store: LedgerStore,
    trim: Callable[[], None],
    requested: AutoResetEvent,
    fail: Callable[[LedgerError], None],
) -> None:
    """Trim the ledger when it is requested, and remove entries; at first the old ones.

    Spark waits for the source at each commit, and an entry takes two syncs of a disk or
    a request to an object store. So this runs beside the query. On an error of the
    ledger it calls `fail` and returns.
    """
    try:
        while True:
            await run_sync(trim)
            if not await run_sync(store.remove_old_entries):
                await requested.wait_until(FOREVER)
    except LedgerError as error:
        fail(error)


async def watch_parent(stop: Callable[[], None]) -> None:
    """Call `stop` and return when Spark's process has ended.

    A call that waits for records does not notice that its socket is closed, and would
    keep the ledger locked for the next driver.
    """
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 (the system offers no event)
        await anyio.sleep(PARENT_CHECK_INTERVAL)
    _log.warning("Spark's process has ended; the source stops")
    stop()


def report_end(error: Exception, ledger: Ledger, finished: int) -> Exception:
    """Return the only exception of a group, or the group if it has several.

    If the ledger was deleted, log the records that only this process has.

    Args:
        finished: the position up to which batches have finished.
    """
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, LedgerLostError):
        first = min(max(finished, ledger.begin), ledger.end)
        unfinished = ledger.ranges_between(first, ledger.end)
        _log.error(
            "the ledger is lost; these accepted records are in no finished batch",
            records=describe_ranges(unfinished),
            offsets=ledger.end - first,
            reason=str(error),
        )
    return error
