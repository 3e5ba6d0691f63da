"""The interface through which leases call their owner, an acknowledgement batcher."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.acknowledge.runs import Run

__all__ = ["LeaseOwner"]

AnyLeaseT = TypeVar("AnyLeaseT", contravariant=True)
"""`leases.Lease`, whose module imports this one."""


class LeaseOwner(Protocol[AnyLeaseT]):
    """The owner of leases, which sends their acknowledgements."""

    result_log: ResultLog
    renewable: bool

    def on_acknowledged(self, lease: AnyLeaseT) -> None:
        """Queue the lease, which has pending acknowledgements."""

    def on_delayed(self, lease: AnyLeaseT, offsets: Sequence[int], due: float) -> None:
        """Schedule the release of records for the time `due`."""

    def reject_late_ack(self, lease: AnyLeaseT, runs: Sequence[Run]) -> None:
        """Report acknowledgements made after the session ended as failed."""

    def forget_expired(self, now: float) -> object:
        """Report records as lost whose locks have ended on their last delivery."""
