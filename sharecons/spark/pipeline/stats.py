"""Statistics of a run's batches, and the table that a run prints at its end."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

__all__ = ["SCHEMA", "BatchStats", "format_table", "measure_batch"]

QUANTILES = (0.5, 0.9, 0.99)

SCHEMA = (
    "batch BIGINT, at TIMESTAMP, rows BIGINT, quarantined BIGINT, redelivered BIGINT, "
    "lag BIGINT, backlog BIGINT, latency_p50 DOUBLE, latency_p90 DOUBLE, "
    "latency_p99 DOUBLE, seconds DOUBLE"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStats:
    """Statistics of one batch.

    The latency of a record is the time from its timestamp to its batch, in seconds.

    Attributes:
        lag: the group's lag when the previous batch was planned; -1 if unknown.
        backlog: the offsets of the ledger that no batch had finished then; -1 if
            unknown.
        seconds: the time for writing the batch.
    """

    batch: int
    at: Any
    rows: int
    quarantined: int
    redelivered: int
    lag: int
    backlog: int
    latency_p50: float
    latency_p90: float
    latency_p99: float
    seconds: float

    def as_row(self) -> tuple[Any, ...]:
        """Return a row of `SCHEMA`."""
        return astuple(self)


def measure_batch(
    validated: DataFrame, batch: int, *, lag: int, backlog: int, seconds: float
) -> BatchStats:
    """Return the statistics of one batch, in one pass over its validated records."""
    latency = sql.unix_millis(sql.current_timestamp()) - sql.unix_millis("timestamp")
    quantiles = sql.percentile_approx(latency, list(QUANTILES)).alias("quantiles")
    found = validated.agg(
        sql.current_timestamp().alias("at"),
        sql.count_if(sql.col("reason").isNull()).alias("rows"),
        sql.count_if(sql.col("reason").isNotNull()).alias("quarantined"),
        sql.count_if(sql.col("deliveryCount") > 1).alias("redelivered"),
        quantiles,
    ).collect()[0]
    p50, p90, p99 = (value / 1000 for value in found["quantiles"] or (0, 0, 0))
    return BatchStats(
        batch=batch,
        at=found["at"],
        rows=found["rows"],
        quarantined=found["quarantined"],
        redelivered=found["redelivered"],
        lag=lag,
        backlog=backlog,
        latency_p50=p50,
        latency_p90=p90,
        latency_p99=p99,
        seconds=seconds,
    )


def format_table(batches: Sequence[BatchStats]) -> str:
    """Return a table of a run's batches, for a terminal."""
    if not batches:
        return "no records\n"
    head = "batch      rows  quarantined  redelivered  p50 s  p99 s  seconds\n"
    lines = [
        f"{b.batch:5}  {b.rows:8,}  {b.quarantined:11,}  {b.redelivered:11,}  "
        f"{b.latency_p50:5.1f}  {b.latency_p99:5.1f}  {b.seconds:7.2f}\n"
        for b in batches
    ]
    rows, bad, again = (
        sum(getattr(b, name) for b in batches)
        for name in ("rows", "quarantined", "redelivered")
    )
    return head + "".join(lines) + f"  all  {rows:8,}  {bad:11,}  {again:11,}\n"
