"""Statistics of a run's batches, and the table that a run prints at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

__all__ = [
    "SCHEMA",
    "UNKNOWN",
    "BatchStats",
    "Waiting",
    "format_table",
    "measure_batch",
]

QUANTILES = (0.5, 0.9, 0.99)

SCHEMA = (
    "batch STRING, number BIGINT, run STRING, at TIMESTAMP, rows BIGINT, "
    "quarantined BIGINT, redelivered BIGINT, bytes BIGINT, lag BIGINT, backlog BIGINT, "
    "latency_p50 DOUBLE, latency_p90 DOUBLE, latency_p99 DOUBLE, seconds DOUBLE"
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

    def as_row(self) -> dict[str, Any]:
        """Return a row of `SCHEMA`."""
        return asdict(self)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"at": self.at.isoformat()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "BatchStats":
        return cls(**{**found, "at": datetime.fromisoformat(found["at"])})


def measure_batch(validated: DataFrame, *, waiting: Waiting, **more: Any) -> BatchStats:
    """Return the statistics of one batch, in one pass over its validated records.

    Args:
        more: `batch`, `number` and `run`.
    """
    latency = sql.unix_millis(sql.current_timestamp()) - sql.unix_millis("timestamp")
    quantiles = sql.percentile_approx(latency, list(QUANTILES)).alias("quantiles")
    found = validated.agg(
        sql.count_if(sql.col("reason").isNull()).alias("rows"),
        sql.count_if(sql.col("reason").isNotNull()).alias("quarantined"),
        sql.count_if(sql.col("deliveryCount") > 1).alias("redelivered"),
        sql.coalesce(sql.sum(sql.length("value")), sql.lit(0)).alias("bytes"),
        quantiles,
    ).collect()[0]
    p50, p90, p99 = (value / 1000 for value in found["quantiles"] or (0, 0, 0))
    return BatchStats(
        at=datetime.now(UTC),
        rows=found["rows"],
        quarantined=found["quarantined"],
        redelivered=found["redelivered"],
        bytes=found["bytes"],
        lag=waiting.lag,
        backlog=waiting.backlog,
        latency_p50=p50,
        latency_p90=p90,
        latency_p99=p99,
        seconds=0.0,
        **more,
    )


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
