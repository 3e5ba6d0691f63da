"""The page and picture of stored results.

python -m tests.bench.spark.report DIRECTORY
"""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.results import load_results
from tests.bench.spark.page import document, tables

__all__ = ["NAME", "render"]

NAME: Final = "spark.json"

log = logging.getLogger("tests.bench.spark")


def render(directory: Path) -> str:
    """Write spark.md and spark.png; return the tables.

    An existing spark-notes.md in the directory is included in the page.
    """
    content = load_results(directory / NAME)
    notes = directory / "spark-notes.md"
    notes_text = notes.read_text().strip() if notes.exists() else ""
    picture = _draw_picture(content["measurements"], directory / "spark.png")
    page = directory / "spark.md"
    page.write_text(document(content, picture, notes_text))
    log.info("wrote %s", page)
    return "\n".join(tables(content["measurements"])) + "\n"


def _draw_picture(measurements: Sequence[dict[str, Any]], path: Path) -> str:
    try:
        from tests.bench.spark.picture import draw
    except ImportError as error:
        log.info("the picture is skipped: %s", error)
        return ""
    return path.name if draw(measurements, path) else ""


if __name__ == "__main__":
    sys.stdout.write(render(Path(sys.argv[1])))
