"""Counters of one consumer, under KIP-932's names."""

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
"""The metrics of KIP-932, "Client metrics"."""

OWN_NAMES: Final = (
    "records-released-unworked-total",
    "last-deliveries-unworked-total",
    "locks-expired-total",
    "locks-lost-total",
    "records-archived-total",
)
"""Metrics beyond the KIP. The "unworked" records were released before the application
processed them; the second counts those that were on their last delivery."""


class Counters:
    """Counters since the consumer was created."""

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
