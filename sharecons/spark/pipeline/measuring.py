"""Measures a batch: counts, latency and reasons, with Spark."""

from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from sharecons.spark.pipeline.stats import BatchStats, Waiting

__all__ = ["MAX_REASONS", "OTHER_REASONS", "measure_batch"]

QUANTILES: Final = (0.5, 0.9, 0.99)

MAX_REASONS: Final = 20
"""Reasons that a batch counts. A reason has no values of records in it, but a schema of
a thousand columns has thousands of reasons."""

MAX_REASON_LENGTH: Final = 200

OTHER_REASONS: Final = "other reasons"


def measure_batch(validated: DataFrame, *, waiting: Waiting, **more: Any) -> BatchStats:
    """Return the statistics of one batch, in one pass over its validated records.

    Quarantined records take a second pass, for their reasons.

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
    reasons = _count_reasons(validated, found["quarantined"])
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
        reasons=reasons,
        **more,
    )


def _count_reasons(validated: DataFrame, quarantined: int) -> dict[str, int]:
    """Return the number of records by reason, the most frequent first."""
    if not quarantined:
        return {}
    reason = sql.substring("reason", 1, MAX_REASON_LENGTH).alias("reason")
    counts = (
        validated.where(sql.col("reason").isNotNull())
        .groupBy(reason)
        .agg(sql.count("*").alias("records"))
        .orderBy(sql.desc("records"), "reason")
        .limit(MAX_REASONS)
    )
    reasons = {row["reason"]: row["records"] for row in counts.collect()}
    if rest := quarantined - sum(reasons.values()):
        reasons[OTHER_REASONS] = reasons.get(OTHER_REASONS, 0) + rest
    return reasons
