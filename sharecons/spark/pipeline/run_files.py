"""Reads the batches of runs from the files in `runs/`, without Spark.

The files of a Delta table are read as files of Parquet: Delta merges small files, and
keeps the old ones for a while, so that a batch can be in two files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.stats import BatchStats
from sharecons.spark.pipeline.tables import RUNS

__all__ = ["StoredBatches", "parse_lines", "read_batches"]

_COLUMNS: Final = tuple(field.name for field in fields(BatchStats))
_REQUIRED: Final = frozenset(_COLUMNS) - {"reasons"}
"""Runs of earlier versions have no reasons."""


@dataclass(frozen=True, slots=True)
class StoredBatches:
    """The batches of a pipeline's directory.

    Attributes:
        problems: a sentence for each file that cannot be read.
    """

    batches: Sequence[BatchStats]
    problems: Sequence[str]


def read_batches(directory: str) -> StoredBatches:
    """Read the batches of all runs.

    Args:
        directory: the path or URL that the pipeline had as `--into`.

    Raises:
        ConfigurationError: there is no such directory, or its file system is unknown.
    """
    files, root = _open(directory)
    if files.get_file_info(root).type != pyarrow.fs.FileType.Directory:
        raise ConfigurationError(
            f"{directory}: no such directory; name the directory of --into"
        )
    selector = pyarrow.fs.FileSelector(
        f"{root.rstrip('/')}/{RUNS}", allow_not_found=True
    )
    batches: dict[tuple[str, str], BatchStats] = {}
    problems: list[str] = []
    for info in sorted(files.get_file_info(selector), key=lambda each: each.path):
        if not info.is_file or not _is_data(info.base_name):
            continue
        try:
            for each in parse_lines(_read_lines(files, info.path)):
                batches[each.run, each.batch] = each
        # A truncated file has OSError, ArrowInvalid (a ValueError) or others.
        except (OSError, ValueError, pa.ArrowException) as error:
            reason = str(error).partition("\n")[0]
            problems.append(f"{info.path} cannot be read, and is left out: {reason}")
    return StoredBatches(list(batches.values()), problems)


def parse_lines(lines: Iterable[Mapping[str, Any]]) -> list[BatchStats]:
    """Return the batches of lines of `runs`; columns that are unknown are ignored.

    Raises:
        ValueError: a column is missing.
    """
    return [_parse_line(each) for each in lines]


def _parse_line(line: Mapping[str, Any]) -> BatchStats:
    if missing := sorted(name for name in _REQUIRED if line.get(name) is None):
        raise ValueError(f"a batch has no {', '.join(missing)}")
    found = {name: line[name] for name in _COLUMNS if name in line}
    at: datetime = found["at"]
    return BatchStats(
        **found
        | {
            "at": at if at.tzinfo else at.replace(tzinfo=UTC),
            "reasons": dict(found.get("reasons") or ()),
        }
    )


def _open(directory: str) -> tuple[Any, str]:
    """Return the file system and the path of a directory."""
    if "://" not in directory and not directory.startswith("file:"):
        local = str(Path(directory).expanduser().absolute())
        return pyarrow.fs.LocalFileSystem(), local
    # Hadoop's name of S3.
    url = directory.replace("s3a://", "s3://", 1)
    try:
        files, path = pyarrow.fs.FileSystem.from_uri(url)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ConfigurationError(
            f"{directory}: {error}; use a path, or a URL of a file system that pyarrow "
            "knows"
        ) from error
    return files, path


def _is_data(name: str) -> bool:
    return name[0] not in "._" and name.endswith(".parquet")


def _read_lines(files: Any, path: str) -> list[dict[str, Any]]:
    with files.open_input_file(path) as file:
        lines: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return lines
