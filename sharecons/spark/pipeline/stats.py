"""Statistics of a run's batches, and the table that a run prints at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

__all__ = [
    "SCHEMA",
    "UNKNOWN",
    "BatchStats",
    "Waiting",
    "format_table",
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


def format_table(batches: Sequence[BatchStats]) -> str:
    """Return a table of a run's batches, for a terminal."""
    if not batches:
        return "no records\n"
    head = "batch      rows  quarantined  redelivered  p50 s  p99 s  seconds\n"
    lines = [
        f"{b.number:5}  {b.rows:8,}  {b.quarantined:11,}  {b.redelivered:11,}  "
        f"{b.latency_p50:5.1f}  {b.latency_p99:5.1f}  {b.seconds:7.2f}\n"
        for b in batches
    ]
    rows, bad, again = (
        sum(getattr(b, name) for b in batches)
        for name in ("rows", "quarantined", "redelivered")
    )
    return head + "".join(lines) + f"  all  {rows:8,}  {bad:11,}  {again:11,}\n"
