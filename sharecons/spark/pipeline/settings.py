"""The command line of the pipeline."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from sharecons.spark.pipeline.framing import ConfluentFraming
from sharecons.spark.pipeline.timestamps import UNITS

__all__ = ["PAGE", "PROGRAM", "Settings", "parse_arguments"]

PROGRAM: Final = "python -m sharecons.spark.pipeline"
REQUEUE: Final = "requeue"
PAGE: Final = "page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one run.

    Attributes:
        requeues: whether to decode the records in quarantine, instead of a topic.
        schema: DDL for JSON, or an Avro schema in JSON.
        into: the directory, or its URL, for rows and all other files.
        partition_by: columns; empty for the day of the record's timestamp.
        sink: "parquet" or "delta".
        merge_by: the columns of the key of a Delta table; empty to append all rows.
        prefix: the prefix of the pipeline's own columns; see `own_columns`.
        every: the interval of batches; None to end once everything was read.
        options: options of the source.
        page: the file of the page of the run.
    """

    requeues: bool = False
    bootstrap_servers: str = ""
    topics: tuple[str, ...] = ()
    group: str = ""
    schema: str
    into: str
    format: str = "json"
    sink: str = "parquet"
    partition_by: tuple[str, ...] = ()
    merge_by: tuple[str, ...] = ()
    prefix: str | None = None
    timestamp_unit: str | None = None
    rounds: bool = False
    framing: ConfluentFraming | None = None
    every: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    page: str | None = None
    verbose: bool = False

    def path(self, name: str) -> str:
        return f"{self.into.rstrip('/')}/{name}"


def parse_arguments(arguments: Sequence[str] | None = None) -> Settings:
    """Parse the command line; exit with an error message if it is invalid."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    requeues = given[:1] == [REQUEUE]
    parser = _requeue_parser() if requeues else _parser()
    parsed = parser.parse_args(given[1:] if requeues else given)
    source: dict[str, Any] = {} if requeues else _source(parsed)
    return Settings(
        requeues=requeues,
        **source,
        schema=parsed.schema,
        into=parsed.into,
        format=parsed.format,
        sink=parsed.sink,
        partition_by=tuple(parsed.partition_by),
        merge_by=_merge_by(parser, parsed),
        prefix=parsed.prefix,
        timestamp_unit=parsed.timestamp_unit,
        rounds=parsed.round,
        framing=_framing(parser, parsed),
        options=dict(parsed.option),
        verbose=parsed.verbose,
    )


def _source(parsed: argparse.Namespace) -> dict[str, Any]:
    return {
        "bootstrap_servers": parsed.bootstrap_servers,
        "topics": tuple(parsed.topic),
        "group": parsed.group,
        "every": parsed.every,
        "page": parsed.page,
    }


def _merge_by(
    parser: argparse.ArgumentParser, parsed: argparse.Namespace
) -> tuple[str, ...]:
    if parsed.merge_by and parsed.sink != "delta":
        parser.error("--merge-by is for --sink delta; add that option")
    return tuple(parsed.merge_by)


def _framing(
    parser: argparse.ArgumentParser, parsed: argparse.Namespace
) -> ConfluentFraming | None:
    if parsed.framing == "confluent":
        return ConfluentFraming(tuple(parsed.schema_id))
    if parsed.schema_id:
        parser.error("--schema-id is for --framing confluent; add that option")
    return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Read records of a share group. Write valid records as typed rows, "
        "and the others to quarantine, with the reason.",
        epilog=f"Other commands: {PROGRAM} {REQUEUE} decodes records in quarantine "
        f"again; {PROGRAM} {PAGE} makes an HTML page of the runs. Both have --help.",
    )
    add = parser.add_argument
    add("--bootstrap-servers", default="localhost:9092", metavar="HOST:PORT")
    add("--topic", action="append", required=True, help="repeat it for more topics")
    add("--group", required=True, help="the share group")
    add(
        "--every",
        metavar="INTERVAL",
        help="run as a service, with one batch per interval ('10 seconds'), until "
        "SIGTERM or Ctrl-C; without it, end once all current records were read",
    )
    add(
        "--page",
        metavar="FILE",
        help="write an HTML page with plots of the batches, again every 10 seconds",
    )
    _add_common(parser)
    return parser


def _requeue_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {REQUEUE}",
        description="Decode the records in quarantine again, after the schema or the "
        "options were corrected. Records that are valid now become rows; the others "
        "stay in quarantine.",
    )
    _add_common(parser)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--schema",
        required=True,
        help="columns in SQL, where NOT NULL makes a column required; for Avro the "
        "schema in JSON; or @FILE",
        type=_text_or_file,
    )
    add("--format", choices=("json", "avro"), default="json", help="(%(default)s)")
    add(
        "--framing",
        choices=("none", "confluent"),
        default="none",
        help="confluent: remove the 5 bytes that Confluent's serializers write before "
        "each value (%(default)s)",
    )
    add(
        "--schema-id",
        action="append",
        default=[],
        type=int,
        metavar="ID",
        help="quarantine values framed with another schema id; repeat it for more ids",
    )
    add(
        "--timestamp-unit",
        choices=tuple(UNITS),
        help="unit of numbers in TIMESTAMP columns; without it they are quarantined",
    )
    add(
        "--round",
        action="store_true",
        help="round numbers and timestamps that have more digits than their column; "
        "without it they are quarantined",
    )
    add("--into", required=True, metavar="DIR", help="a directory, or its URL")
    add(
        "--sink",
        choices=("parquet", "delta"),
        default="parquet",
        help="files of Parquet, or Delta tables (%(default)s)",
    )
    add(
        "--merge-by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="delta: keep the latest row for each value of this column; repeat it for "
        "a key of several columns",
    )
    add(
        "--partition-by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="partition rows by this column; repeat it for more columns (day, of the "
        "record's timestamp)",
    )
    add(
        "--prefix",
        help="prefix of the columns that the pipeline adds (_topic, _partition, "
        "_offset, _timestamp, _deliveryCount, batch, day)",
    )
    add(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="option of the source, as in docs/spark.md; repeat it for more options",
    )
    add("--verbose", action="store_true", help="show Spark's log, and complete errors")


def _text_or_file(text: str) -> str:
    if not text.startswith("@"):
        return text
    try:
        with open(PurePosixPath(text[1:]), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        reason = f"{text[1:]} cannot be read: {error.strerror}"
        raise argparse.ArgumentTypeError(reason) from error


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value
