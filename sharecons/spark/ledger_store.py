"""What a driver needs of whatever keeps its ledger."""

from collections.abc import Sequence
from typing import Protocol

from sharecons.spark.ledger import AcquiredRange, Ledger

__all__ = ["LedgerStore"]


class LedgerStore(Protocol):
    """Keeps segments of the ledger; `sharecons.spark.store.Store` is one."""

    def append(self, segment: Sequence[AcquiredRange]) -> None:
        """Keep it; durable when this returns."""

    def trim(self, ledger: Ledger) -> None:
        """Keep no more what the ledger has trimmed."""

    def sweep(self) -> bool:
        """Remove some of what is kept no more; tell whether there is more of it."""
        ...

    def check(self) -> None:
        """Raise LedgerTakenError if another driver took the ledger over."""

    def close(self) -> None:
        """Let another driver in."""
