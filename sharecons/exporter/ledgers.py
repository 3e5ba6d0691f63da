"""Reads the backlogs of Spark queries from their ledgers, in threads.

A directory on a network can hang. So each read has a time limit, and a ledger is not
read again before its last read has returned.
"""

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Final, final

import anyio
from anyio.to_thread import run_sync

from sharecons.errors import Error
from sharecons.spark.backlog import BacklogReader, LedgerBacklog
from sharecons.spark.errors import LedgerError

__all__ = ["Ledgers"]

READ_TIMEOUT: Final = 5.0
"""Seconds for reading one ledger; all are read concurrently."""


@final
class Ledgers:
    """The ledgers of some queries.

    Args:
        locations: their `ledgerLocation`.

    Raises:
        ConfigurationError: a location cannot store a ledger, or a package for its file
            system is missing.
    """

    def __init__(self, locations: Iterable[str] = ()) -> None:
        self._readers = {each: BacklogReader(each) for each in locations}
        self._locks = {each: Lock() for each in self._readers}

    async def read(self) -> tuple[Mapping[str, LedgerBacklog], Sequence[Error]]:
        """Return the backlogs of readable ledgers by location, and other errors."""
        found: dict[str, LedgerBacklog] = {}
        errors: list[Error] = []

        async def read(location: str) -> None:
            try:
                found[location] = await self._read(location)
            except Error as error:
                errors.append(error)

        async with anyio.create_task_group() as tasks:
            for location in self._readers:
                tasks.start_soon(read, location)
        return {each: found[each] for each in self._readers if each in found}, errors

    async def _read(self, location: str) -> LedgerBacklog:
        with anyio.move_on_after(READ_TIMEOUT):
            return await run_sync(
                self._read_in_thread, location, abandon_on_cancel=True
            )
        raise _late_error(location)

    def _read_in_thread(self, location: str) -> LedgerBacklog:
        lock = self._locks[location]
        if not lock.acquire(blocking=False):
            raise _late_error(location)
        try:
            return self._readers[location].read()
        finally:
            lock.release()


def _late_error(location: str) -> LedgerError:
    return LedgerError(
        f"the ledger in {location} was not read within {READ_TIMEOUT:g} s; check its "
        "file system"
    )
