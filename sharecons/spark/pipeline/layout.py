"""The layout of a pipeline's directory, which later runs cannot change.

Rule: no I/O here, except for `Layout.load` and `Layout.store`.

Time zone, NOT NULL and other settings of decoding can change between two runs, and
columns can be added or left out. A column cannot get another type, and rows cannot be
partitioned by other columns: readers of the directory would fail.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from pyspark.sql import types as spark

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.files import Files

__all__ = ["Layout"]

NAME: Final = "layout.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The layout of a directory.

    Attributes:
        sink: "parquet" or "delta".
        partition_by: the columns whose values are names of directories.
        merge_by: the columns that identify a row; empty if rows are appended.
        prefix: the prefix of the pipeline's own columns.
        columns: the types of all columns that runs have written, as Spark's JSON.
        commits: the id and the location of the commit files; None in a directory of
            an earlier version.
    """

    sink: str
    partition_by: tuple[str, ...]
    merge_by: tuple[str, ...] = ()
    prefix: str | None = None
    columns: Mapping[str, Any]
    commits: Mapping[str, str] | None = None

    @classmethod
    def load(cls, files: Files) -> "Layout | None":
        """Return the layout of a directory; None before its first batch."""
        data = files.read(NAME)
        if data is None:
            return None
        found = json.loads(data)
        for name in ("partition_by", "merge_by"):
            found[name] = tuple(found[name])
        return cls(**found)

    def store(self, files: Files) -> None:
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False)
        files.replace(NAME, text.encode())

    def extend(self, new: "Layout", into: str) -> "Layout":
        """Return this layout with the columns of a new run.

        Args:
            into: the directory, for errors.

        Raises:
            ConfigurationError: the new run has another layout.
        """
        for option, name in _OPTIONS.items():
            old, other = getattr(self, name), getattr(new, name)
            if old != other:
                raise ConfigurationError(
                    f"{option} is {_shown(other)}, but the rows in {into} were written "
                    f"with {_shown(old)}; use that, or another --into"
                )
        columns = _merge_columns(self.columns, new.columns, into)
        return replace(self, columns=columns)


_OPTIONS: Final[Mapping[str, str]] = {
    "--sink": "sink",
    "--partition-by": "partition_by",
    "--merge-by": "merge_by",
    "--prefix": "prefix",
}


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        value = ", ".join(value)
    return value or "none"


def _merge_columns(
    old: Mapping[str, Any], new: Mapping[str, Any], where: str
) -> dict[str, Any]:
    # Spark ignores the case of names.
    known = {name.lower(): name for name in old}
    merged = dict(old)
    for name, kind in new.items():
        name = known.get(name.lower(), name)
        merged[name] = _merge(old[name], kind, name, where) if name in old else kind
    return merged


def _merge(old: Any, new: Any, name: str, where: str) -> Any:
    """Merge two types; structs can have different fields."""
    if _is_struct(old) and _is_struct(new):
        fields = _merge_columns(_fields(old), _fields(new), where)
        return spark.StructType(
            [spark.StructField(n, _type(t)) for n, t in fields.items()]
        ).jsonValue()
    if old != new:
        raise ConfigurationError(
            f"--schema: the column {name} is {_type(new).simpleString().upper()}, but "
            f"{where} has {_type(old).simpleString().upper()}; use that type, a new "
            "column, or another --into"
        )
    return old


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, dict) and kind["type"] == "struct"


def _fields(kind: Any) -> dict[str, Any]:
    return {each["name"]: each["type"] for each in kind["fields"]}


def _type(kind: Any) -> Any:
    field = {"name": "x", "type": kind, "nullable": True, "metadata": {}}
    return spark.StructField.fromJson(field).dataType
