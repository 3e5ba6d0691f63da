"""The columns that the pipeline adds to rows, and checks of column names.

By default Spark ignores the case of column names, and so do most readers of Parquet. So
two names that differ only in case are in conflict.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import StructType

from sharecons.errors import ConfigurationError

__all__ = [
    "ORIGIN",
    "OwnColumns",
    "check_different",
    "key_columns",
    "partition_columns",
]

ORIGIN: Final = ("topic", "partition", "offset", "timestamp", "deliveryCount")
"""Columns of the source with the origin of a row."""

_PREFIX: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """Names of the pipeline's own columns.

    Attributes:
        prefix: the prefix of all names. If it is None, the columns of `origin` have the
            prefix `_`, and the others have none.
    """

    prefix: str | None = None

    def __post_init__(self) -> None:
        if self.prefix is not None and not _PREFIX.fullmatch(self.prefix):
            raise ConfigurationError(
                f"--prefix {self.prefix!r}: use letters, digits and _, as in kafka_"
            )

    @property
    def origin(self) -> dict[str, str]:
        """The columns of the source, and their names in rows."""
        prefix = "_" if self.prefix is None else self.prefix
        return {name: f"{prefix}{name}" for name in ORIGIN}

    @property
    def batch(self) -> str:
        """The column of a batch's directories."""
        return f"{self.prefix or ''}batch"

    @property
    def day(self) -> str:
        """The column of the day of the record's timestamp."""
        return f"{self.prefix or ''}day"

    def check(self, columns: Sequence[str]) -> None:
        """Check that the columns of a schema differ from these, and from one another.

        Raises:
            ConfigurationError: two have the same name.
        """
        check_different(columns, "--schema")
        seen = {name.lower(): name for name in columns}
        for own in (*self.origin.values(), self.batch):
            if own.lower() in seen:
                raise ConfigurationError(
                    f"--schema has a column {seen[own.lower()]}, and so has the "
                    f"pipeline ({own}); rename yours, or the pipeline's by --prefix"
                )


def check_different(columns: Sequence[str], where: str) -> None:
    """Raise ConfigurationError if two names are equal, or differ in case only."""
    seen: dict[str, str] = {}
    for name in columns:
        if name.lower() in seen:
            raise ConfigurationError(
                f"{where} has the columns {seen[name.lower()]} and {name}, which are "
                "the same for Spark; rename one of them"
            )
        seen[name.lower()] = name


def partition_columns(
    requested: Sequence[str], columns: Sequence[str], own: OwnColumns
) -> tuple[str, ...]:
    """Return the columns to partition by, in the case of the schema.

    Args:
        requested: the user's columns; empty for the day of the record's timestamp.
        columns: the columns of the schema.

    Raises:
        ConfigurationError: a column does not exist, or is requested twice.
    """
    names = {name.lower(): name for name in columns}
    if not requested:
        if own.day.lower() in names:
            yours = names[own.day.lower()]
            raise ConfigurationError(
                f"--schema has a column {yours}, and rows are partitioned by a "
                f"{own.day} of the record's timestamp by default; choose yours with "
                f"--partition-by {yours}, or rename the other by --prefix"
            )
        return (own.day,)
    names = {own.day.lower(): own.day} | names
    return tuple(_find_column(name, requested, names) for name in requested)


def key_columns(requested: Sequence[str], schema: StructType) -> tuple[str, ...]:
    """Return the columns of a key, in the case of the schema.

    Raises:
        ConfigurationError: a column does not exist, is requested twice, or can be null.
    """
    names = {name.lower(): name for name in schema.names}
    found = [_find_column(name, requested, names, "--merge-by") for name in requested]
    for field in schema:
        if field.name in found and field.nullable:
            raise ConfigurationError(
                f"--merge-by {field.name}: the column can be null, and null equals no "
                "other value; declare it NOT NULL in --schema"
            )
    return tuple(found)


def _find_column(
    name: str,
    requested: Sequence[str],
    names: dict[str, str],
    option: str = "--partition-by",
) -> str:
    if name.lower() not in names:
        raise ConfigurationError(
            f"{option} {name}: there is no such column; choose from "
            f"{', '.join(names.values())}"
        )
    if [each.lower() for each in requested].count(name.lower()) > 1:
        raise ConfigurationError(f"{option} {name} is repeated; remove one")
    return names[name.lower()]
