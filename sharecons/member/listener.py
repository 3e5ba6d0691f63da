"""The interface for the events of a member."""

from collections.abc import Sequence
from typing import Protocol

from sharecons.errors import Error
from sharecons.member.ack_dispatcher import AckListener
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["Listener"]


class Listener(AckListener, Protocol):
    """Receives a member's events for the application, in plain function calls."""

    def on_acquired(self, leases: Sequence[Lease]) -> None:
        """Handle the records that a response acquired."""

    def on_locks_lost(self, leases: Sequence[Lease]) -> bool:
        """Handle the loss of all locks of these leases; return whether this logs it."""
        ...

    def on_error(self, error: Error) -> None:
        """Handle an error that the application is to receive once."""

    def on_fatal_error(self, error: Error) -> None:
        """Handle an error that ends the consumer."""
