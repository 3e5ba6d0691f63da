"""Opens a pipeline's directory for writing."""

import uuid
from typing import Any, Final

from sharecons.spark.ledger_options import parse_ledger_option
from sharecons.spark.pipeline.batch_writer import BatchWriter
from sharecons.spark.pipeline.commits import CommitLog
from sharecons.spark.pipeline.delta_sink import DeltaSink
from sharecons.spark.pipeline.files import Files
from sharecons.spark.pipeline.layout import Layout
from sharecons.spark.pipeline.parquet_sink import ParquetSink
from sharecons.spark.pipeline.settings import Settings
from sharecons.spark.pipeline.tables import Sink
from sharecons.spark.pipeline.validation import Rows, stored_type
from sharecons.spark.storage import Storage, open_storage

__all__ = ["open_writer"]

LEDGER: Final = "ledger."


def open_writer(spark: Any, settings: Settings, rows: Rows) -> BatchWriter:
    """Return a writer for the directory of `settings.into`.

    Raises:
        ConfigurationError: the rows of earlier runs have another layout.
    """
    run = uuid.uuid4().hex[:12]
    files = Files(spark, settings.into)
    layout = _layout_of(settings, rows)
    known = Layout.load(files)
    if known is not None:
        layout = known.extend(layout, settings.into)

    def store_layout() -> None:
        nonlocal known
        if layout != known:
            layout.store(files)
            known = layout

    sink: Sink = ParquetSink(spark, files, run)
    if settings.sink == "delta":
        sink = DeltaSink(spark, files, rows)
    return BatchWriter(
        files,
        CommitLog(_open_commits(settings)),
        sink,
        rows,
        run=run,
        on_commit=store_layout,
        requeues=settings.requeues,
    )


def _layout_of(settings: Settings, rows: Rows) -> Layout:
    fields = stored_type(rows.schema).jsonValue()["fields"]
    return Layout(
        sink=settings.sink,
        partition_by=rows.partition_by,
        merge_by=rows.merge_by,
        prefix=settings.prefix,
        columns={each["name"]: each["type"] for each in fields},
    )


def _open_commits(settings: Settings) -> Storage:
    """Open the directory of commit files, in the storage of the ledger."""
    given = {name.lower(): value for name, value in settings.options.items()}
    ledger = given.get("ledgerlocation")
    location = f"{ledger.rstrip('/')}.commits" if ledger else settings.path("commits")
    options = {
        name.removeprefix(LEDGER): parse_ledger_option(name, value)
        for name, value in settings.options.items()
        if name.startswith(LEDGER)
    }
    return open_storage(location, options)
