"""The command line of the pipeline."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

__all__ = ["Settings", "parse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one run is to do."""

    bootstrap_servers: str
    topics: tuple[str, ...]
    group: str
    schema: str
    into: str
    format: str = "json"
    partition_by: tuple[str, ...] = ("day",)
    every: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    picture: str | None = None

    def place(self, name: str) -> str:
        return f"{self.into.rstrip('/')}/{name}"


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Read the command line; ends the program with a sentence if it makes no sense."""
    given = _parser().parse_args(arguments)
    return Settings(
        bootstrap_servers=given.bootstrap_servers,
        topics=tuple(given.topic),
        group=given.group,
        schema=given.schema,
        into=given.into,
        format=given.format,
        partition_by=tuple(given.partition_by) or ("day",),
        every=given.every,
        options=dict(given.option),
        picture=given.picture,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sharecons.spark.pipeline",
        description="Take records of a share group, keep the valid ones as rows of "
        "Parquet, and the others, with the reason, in quarantine.",
    )
    add = parser.add_argument
    add("--bootstrap-servers", default="localhost:9092", metavar="HOST:PORT")
    add("--topic", action="append", required=True, help="give it again for more")
    add("--group", required=True, help="the share group")
    add(
        "--schema",
        required=True,
        help="columns as in SQL, where NOT NULL makes one that must be there; for Avro "
        "the schema, or @FILE",
        type=_text_or_file,
    )
    add("--format", choices=("json", "avro"), default="json", help="(%(default)s)")
    add("--into", required=True, metavar="DIR", help="a directory, or its URL")
    add(
        "--partition-by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="of the rows; give it again for more (day, of the record's timestamp)",
    )
    add(
        "--every",
        metavar="INTERVAL",
        help="go on, with a batch so often ('10 seconds'), until a signal; without it "
        "the program ends when what is there has been taken",
    )
    add(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="of the source, as in docs/spark.md; give it again for more",
    )
    add("--picture", metavar="FILE", help="draw the run's batches into this SVG")
    return parser


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
