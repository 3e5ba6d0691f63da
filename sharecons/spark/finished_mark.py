"""The mark of the position up to which batches have finished, for `backlog`."""

from typing import Final, final

import anyio
from anyio.to_thread import run_sync

from sharecons.log import get_logger
from sharecons.spark.errors import LedgerError
from sharecons.spark.ledger_store import LedgerStore

__all__ = ["FinishedMark"]

INTERVAL: Final = 5.0
"""Seconds between two marks; an object store takes three requests for one."""

_log = get_logger(__name__)


@final
class FinishedMark:
    """Writes the mark of one query while it runs.

    Attributes:
        position: where finished batches end. None until Spark plans a batch: its
            checkpoint can be older than the ledger.
    """

    def __init__(self, store: LedgerStore) -> None:
        self.position: int | None = None
        self._store = store
        self._written: int | None = None

    def write(self) -> None:
        """Write the position if it has changed. This blocks.

        Raises:
            LedgerError: the ledger's storage cannot be written.
        """
        position = self.position
        if position is not None and position != self._written:
            self._store.mark_finished(position)
            self._written = position

    async def keep_writing(self) -> None:
        """Write every INTERVAL seconds; log errors of the ledger.

        Until a mark is written, readers count too much.
        """
        while True:
            await anyio.sleep(INTERVAL)
            try:
                await run_sync(self.write)
            except LedgerError as error:
                _log.warning("finished batches are not marked", reason=str(error))
