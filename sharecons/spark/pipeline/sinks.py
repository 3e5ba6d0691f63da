"""Opens a pipeline's directory for writing."""

import uuid
from dataclasses import replace
from typing import Any, Final

from sharecons.errors import ConfigurationError
from sharecons.spark.ledger_options import parse_ledger_option
from sharecons.spark.pipeline.batch_writer import BatchWriter
from sharecons.spark.pipeline.commits import CommitLog
from sharecons.spark.pipeline.delta_sink import DeltaSink
from sharecons.spark.pipeline.files import Files
from sharecons.spark.pipeline.layout import Layout
from sharecons.spark.pipeline.parquet_sink import ParquetSink
from sharecons.spark.pipeline.settings import Settings
from sharecons.spark.pipeline.tables import ROWS, Sink
from sharecons.spark.pipeline.validation import Rows, stored_type
from sharecons.spark.storage import open_storage

__all__ = ["open_writer"]

LEDGER: Final = "ledger."


def open_writer(spark: Any, settings: Settings, rows: Rows) -> BatchWriter:
    """Return a writer for the directory of `settings.into`.

    Raises:
        ConfigurationError: the rows of earlier runs have another layout, or their
            commit files or their directory are missing.
        CommitError: a commit file is damaged.
    """
    run = uuid.uuid4().hex[:12]
    files = Files(spark, settings.into)
    layout = _layout_of(settings, rows)
    known = Layout.load(files)
    if known is not None:
        layout = known.extend(layout, settings.into)
    commits_id = _check_commits(known, settings) or run
    commits = _open_commits(settings)
    _check_rows(files, commits)
    place = {"id": commits_id, "location": commits.location}
    layout = replace(layout, commits=place)

    def store_layout() -> None:
        nonlocal known
        if layout != known:
            commits.create_id(commits_id)
            layout.store(files)
            known = layout

    sink: Sink = ParquetSink(spark, files, run)
    if settings.sink == "delta":
        sink = DeltaSink(spark, files, rows)
    return BatchWriter(
        files,
        commits,
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


def _check_commits(known: Layout | None, settings: Settings) -> str | None:
    """Return the id of the commit files; None if they have none yet.

    Without these files, batches that Spark replays would be in the rows twice.

    Raises:
        ConfigurationError: they are missing, or the rows are.
    """
    commits = _open_commits(settings, creates=False)  # a typo creates nothing
    commits_id = commits.find_id()
    if known is None and commits.list_batches():
        raise ConfigurationError(
            f"{commits.location} has the commit files of batches whose rows were in "
            f"{settings.into}, but that has no layout.json: it was deleted or emptied; "
            "restore it, or use another --into and another ledgerLocation"
        )
    expected = known.commits if known is not None else None
    if expected is not None and expected["id"] != commits_id:
        raise ConfigurationError(
            f"the commit files of the rows in {settings.into} are not in "
            f"{commits.location}, but were in {expected['location']}: without them, "
            "records would be in the rows twice; set --option ledgerLocation as "
            "before; or move that directory with the ledger; or restore it; or use "
            "another --into"
        )
    return commits_id


def _check_rows(files: Files, commits: CommitLog) -> None:
    """Check that the directory of rows exists if a batch has published some.

    Raises:
        ConfigurationError: it is missing.
        CommitError: a commit file is damaged.
    """
    if files.exists(ROWS):
        return
    for each in commits.read_all():
        if each.stats.rows and not files.exists(each.staging):
            raise ConfigurationError(
                f"{files.url(ROWS)} is missing, but the batch {each.batch} has "
                f"published {each.stats.rows} rows in it: it was deleted or moved; "
                "restore it; or read the topics again into another --into with another "
                "group; or create it, empty, to continue without its rows"
            )


def _open_commits(settings: Settings, *, creates: bool = True) -> CommitLog:
    """Open the directory of commit files, in the storage of the ledger."""
    given = {name.lower(): value for name, value in settings.options.items()}
    ledger = given.get("ledgerlocation")
    location = f"{ledger.rstrip('/')}.commits" if ledger else settings.path("commits")
    options = {
        name.removeprefix(LEDGER): parse_ledger_option(name, value)
        for name, value in settings.options.items()
        if name.startswith(LEDGER)
    }
    return CommitLog(open_storage(location, options, creates=creates), location)
