"""The columns that the pipeline adds to rows, and whether their names are free.

Spark compares names of columns without case by default, and so do most readers of
Parquet: two columns that differ only in case count as one here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sharecons.errors import ConfigurationError

__all__ = ["ORIGIN", "OwnColumns", "check_different", "partition_columns"]

ORIGIN: Final = ("topic", "partition", "offset", "timestamp", "deliveryCount")
"""Columns of the source that say where a row came from."""

_PREFIX: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """Names of the pipeline's own columns.

    Attributes:
        prefix: of all of them; without one the origin has `_`, the others nothing.
    """

    prefix: str | None = None

    def __post_init__(self) -> None:
        if self.prefix is not None and not _PREFIX.fullmatch(self.prefix):
            raise ConfigurationError(
                f"--prefix {self.prefix!r}: use letters, digits and _, as in kafka_"
            )

    @property
    def origin(self) -> dict[str, str]:
        """Columns of the source, and what they are called in rows."""
        prefix = "_" if self.prefix is None else self.prefix
        return {name: f"{prefix}{name}" for name in ORIGIN}

    @property
    def batch(self) -> str:
        """The directories of a batch."""
        return f"{self.prefix or ''}batch"

    @property
    def day(self) -> str:
        """The day of the record's timestamp."""
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
    """Raise ConfigurationError if two columns differ in case only, or not at all."""
    seen: dict[str, str] = {}
    for name in columns:
        if name.lower() in seen:
            raise ConfigurationError(
                f"{where} has the columns {seen[name.lower()]} and {name}, which are "
                "one for Spark; rename one of them"
            )
        seen[name.lower()] = name


def partition_columns(
    requested: Sequence[str], columns: Sequence[str], own: OwnColumns
) -> tuple[str, ...]:
    """Return what rows are partitioned by, in the spelling of the columns.

    Args:
        asked: what the user asked for; empty for the day of the record's timestamp.
        columns: the columns of the schema.

    Raises:
        ConfigurationError: there is no such column, or it is there twice.
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


def _find_column(name: str, requested: Sequence[str], names: dict[str, str]) -> str:
    if name.lower() not in names:
        raise ConfigurationError(
            f"--partition-by {name}: there is no such column; choose from "
            f"{', '.join(names.values())}"
        )
    if [each.lower() for each in requested].count(name.lower()) > 1:
        raise ConfigurationError(f"--partition-by {name} is there twice")
    return names[name.lower()]
