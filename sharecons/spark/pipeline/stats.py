"""Statistics of a batch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

__all__ = [
    "SCHEMA",
    "UNKNOWN",
    "BatchStats",
    "Waiting",
]

SCHEMA = (
    "batch STRING, number BIGINT, run STRING, at TIMESTAMP, rows BIGINT, "
    "quarantined BIGINT, redelivered BIGINT, bytes BIGINT, lag BIGINT, backlog BIGINT, "
    "latency_p50 DOUBLE, latency_p90 DOUBLE, latency_p99 DOUBLE, seconds DOUBLE, "
    "reasons MAP<STRING, BIGINT>"
)


class Waiting(NamedTuple):
    """The records that waited when the previous batch was planned; -1 if unknown.

    Attributes:
        lag: the group's lag.
        backlog: the offsets of the ledger that no batch had finished.
    """

    lag: int
    backlog: int


UNKNOWN: Final = Waiting(lag=-1, backlog=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStats:
    """Statistics of one batch.

    The latency of a record is the time from its timestamp to its batch, in seconds.

    Attributes:
        batch: the id of the batch, as in its rows.
        number: the number of the batch in its query.
        run: the id of the run that wrote the batch.
        at: when the batch was written.
        bytes: the size of the records' values.
        lag, backlog: as in `Waiting`.
        seconds: the time for writing the batch.
        reasons: the number of quarantined records, by reason. Rare reasons of a batch
            with many are counted as one.
    """

    batch: str
    number: int
    run: str
    at: datetime
    rows: int
    quarantined: int
    redelivered: int
    bytes: int
    lag: int
    backlog: int
    latency_p50: float
    latency_p90: float
    latency_p99: float
    seconds: float
    reasons: Mapping[str, int] = field(default_factory=dict)

    def as_row(self) -> dict[str, Any]:
        """Return a row of `SCHEMA`."""
        return asdict(self)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"at": self.at.isoformat()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "BatchStats":
        return cls(**{**found, "at": datetime.fromisoformat(found["at"])})
