"""The page and its picture, of the figures that are there.

python -m tests.bench.spark.report DIRECTORY
"""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.results import loaded
from tests.bench.spark.page import document, tables

__all__ = ["NAME", "rendered"]

NAME: Final = "spark.json"

log = logging.getLogger("tests.bench.spark")


def rendered(directory: Path) -> str:
    """Write spark.md and spark.png, and give the tables.

    A spark-notes.md that is there already becomes a part of the page.
    """
    content = loaded(directory / NAME)
    notes = directory / "spark-notes.md"
    said = notes.read_text().strip() if notes.exists() else ""
    picture = _drawn(content["measurements"], directory / "spark.png")
    page = directory / "spark.md"
    page.write_text(document(content, picture, said))
    log.info("written: %s", page)
    return "\n".join(tables(content["measurements"])) + "\n"


def _drawn(measurements: Sequence[dict[str, Any]], path: Path) -> str:
    try:
        from tests.bench.spark.picture import draw
    except ImportError as error:
        log.info("no picture is drawn: %s", error)
        return ""
    return path.name if draw(measurements, path) else ""


if __name__ == "__main__":
    sys.stdout.write(rendered(Path(sys.argv[1])))
