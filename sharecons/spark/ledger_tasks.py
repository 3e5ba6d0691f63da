"""Tasks beside a running member: checks who owns its ledger, and removes old entries.

They run in the member's event loop, and the ledger's store in worker threads.
"""

from collections.abc import Callable
from typing import Final

import anyio
from anyio.to_thread import run_sync

from sharecons.log import get_logger
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent
from sharecons.spark.errors import LedgerError, LedgerTakenError
from sharecons.spark.ledger_store import LedgerStore

__all__ = ["keep_removing_entries", "watch_ownership"]

LEDGER_CHECK_INTERVAL: Final = 5.0

_log = get_logger(__name__)


async def watch_ownership(
    store: LedgerStore, fail: Callable[[LedgerTakenError], None]
) -> None:
    """Call `fail` and return when another driver has taken the ledger over.

    On a storage without locks both run until the older one notices. They share a member
    id, so each removes the other from the group again and again.
    """
    while True:
        await anyio.sleep(LEDGER_CHECK_INTERVAL)
        try:
            await run_sync(store.check_ownership)
        except LedgerTakenError as error:
            fail(error)
            return
        except LedgerError as error:
            # Harmless: the next write notices another driver.
            _log.warning("the ledger could not be checked", reason=str(error))


async def keep_removing_entries(store: LedgerStore, trimmed: AutoResetEvent) -> None:
    """Remove entries after each trim, and at first the previous driver's."""
    while True:
        while await run_sync(store.remove_old_entries):
            pass
        await trimmed.wait_until(FOREVER)
