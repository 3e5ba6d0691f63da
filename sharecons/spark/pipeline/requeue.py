"""Decodes the records in quarantine again, after a correction."""

from typing import Any

from sharecons.spark.pipeline.settings import Settings
from sharecons.spark.pipeline.sinks import open_writer
from sharecons.spark.pipeline.validation import Rows

__all__ = ["requeue"]


def requeue(spark: Any, settings: Settings) -> str:
    """Make rows of the records in quarantine that are valid now; return a summary.

    Args:
        settings: `into` must be a qualified URL (`session.qualify_location`).

    Raises:
        ConfigurationError: the schema is invalid, or the rows have another layout.
        PublishError: another requeue has run at the same time.
    """
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    rows = Rows.from_settings(settings, zone)
    stats = open_writer(spark, settings, rows).requeue()
    if stats is None:
        return "the quarantine is empty"
    return (
        f"{stats.rows:,} records are rows now, {stats.quarantined:,} stay in quarantine"
    )
