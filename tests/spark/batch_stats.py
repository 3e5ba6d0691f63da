"""Statistics of a batch for tests."""

from datetime import UTC, datetime

from sharecons.spark.pipeline.run_stats import RunStats
from sharecons.spark.pipeline.stats import BatchStats

__all__ = ["batch_stats", "run_of"]


def batch_stats(number=0, **more):
    return BatchStats(
        **{
            "batch": f"0123abcd-{number}",
            "number": number,
            "run": "0123456789ab",
            "at": datetime.now(UTC),
            "bytes": 100_000,
            "rows": 1000,
            "quarantined": 3,
            "redelivered": 2,
            "lag": 0,
            "backlog": 0,
            "latency_p50": 0.5,
            "latency_p90": 0.9,
            "latency_p99": 1.5,
            "seconds": 0.25,
        }
        | more
    )


def run_of(batches):
    run = RunStats()
    for batch in batches:
        run.add(batch)
    return run
