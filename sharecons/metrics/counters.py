"""Counters of one consumer, under the names that KIP-932 gives them."""

from collections.abc import Mapping
from typing import Final

from sharecons.protocol.acknowledge.batcher import AcknowledgeResult

__all__ = ["NAMES", "Counters"]

NAMES: Final = (
    "fetch-total",
    "records-consumed-total",
    "acknowledgements-send-total",
    "acknowledgements-error-total",
    "heartbeat-total",
    "rebalance-total",
)
"""As in KIP-932, "Client metrics"."""

OWN_NAMES: Final = (
    "records-released-unworked-total",
    "last-deliveries-unworked-total",
    "locks-expired-total",
    "locks-lost-total",
    "records-archived-total",
)
"""What the KIP has no name for: records that no handler saw, and, last, those that
were released on their last delivery."""


class Counters:
    """Counts what happened since the consumer was made."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = dict.fromkeys((*NAMES, *OWN_NAMES), 0)

    def add(self, name: str, count: int = 1) -> None:
        self._counts[name] += count

    def add_results(self, results: list[AcknowledgeResult]) -> None:
        for result in results:
            count = result.last_offset - result.first_offset + 1
            failed = result.error is not None
            self.add("acknowledgements-send-total", count)
            self.add("acknowledgements-error-total", count * failed)

    def snapshot(self) -> Mapping[str, int]:
        return dict(self._counts)
