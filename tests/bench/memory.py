"""The documented bound for the memory of a consumer or worker.

See "Memory" in docs/consumer.md and "How much at a time" in
docs/worker-concurrency.md. The bound is for one broker and for batches up to
`MAX_BATCH`; it counts keys and values, not the objects that hold them.
"""

from collections.abc import Mapping
from typing import Any, Final

from sharecons.member.settings import FetchLimits
from sharecons.worker.settings import WorkerSettings

__all__ = ["MAX_BATCH", "memory_bound", "memory_settings"]

MAX_BATCH: Final = 1 << 20
ROUNDS_AHEAD: Final = 2
"""The multiple of `max_records`, or of `max_bytes`, that is buffered after a fast
handler has stopped."""


def memory_settings(max_records: int) -> dict[str, int]:
    """Return the settings that decide the bound, of clients with default settings."""
    return {
        "max_records": max_records,
        "max_bytes": FetchLimits().max_bytes,
        "max_held_bytes": WorkerSettings().max_held_bytes,
    }


def memory_bound(measurement: Mapping[str, Any]) -> float:
    """Return the bound in bytes for the records and the handler of a measurement."""
    response = measurement["max_bytes"] + MAX_BATCH
    expansion = measurement["size"] / measurement["stored"]
    # One response arrives, another is delivered, and a partition of that is decoded.
    bound: float = 2 * response + response * expansion
    if measurement["pause_every"] > 1:
        records = measurement["max_records"] * measurement["stored"]
        bound += ROUNDS_AHEAD * min(records, measurement["max_bytes"])
    if measurement["client"] == "sharecons-worker":
        bound += measurement["max_held_bytes"]
    return bound
