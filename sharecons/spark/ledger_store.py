"""The interface between a driver and the store of its ledger."""

from collections.abc import Sequence
from typing import Protocol

from sharecons.spark.ledger import AcquiredRange, Ledger

__all__ = ["LedgerStore"]


class LedgerStore(Protocol):
    """Stores a ledger; implemented by `sharecons.spark.store.Store`."""

    def append(self, segment: Sequence[AcquiredRange]) -> None:
        """Write a segment; it is durable when this returns."""

    def trim(self, ledger: Ledger) -> None:
        """Write a snapshot if the ledger has trimmed whole segments."""

    def remove_old_entries(self) -> bool:
        """Remove some entries that are no longer needed; return whether more are."""
        ...

    def mark_finished(self, position: int) -> None:
        """Write that the batches up to a position have finished."""

    def check_ownership(self) -> None:
        """Raise LedgerTakenError or LedgerLostError if this driver must stop."""

    def close(self) -> None:
        """Unlock the ledger."""
