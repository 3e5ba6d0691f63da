"""Tables and pictures of what was measured.

python -m tests.bench.report RESULTS.json DIRECTORY
"""

import logging
from pathlib import Path

from tests.bench.report.document import document
from tests.bench.results import loaded

__all__ = ["rendered"]

log = logging.getLogger("tests.bench")


def rendered(results: Path, directory: Path) -> list[Path]:
    """Write README.md and its pictures, and give what was written.

    A notes.md that is there already becomes a part of the page.
    """
    content = loaded(results)
    directory.mkdir(parents=True, exist_ok=True)
    pictures = _drawn(content["measurements"], directory)
    page = directory / "README.md"
    names = [picture.name for picture in pictures]
    notes = directory / "notes.md"
    said = notes.read_text().strip() if notes.exists() else ""
    page.write_text(document(content, names, said))
    return [page, *pictures]


def _drawn(measurements: list[dict[str, object]], directory: Path) -> list[Path]:
    try:
        from tests.bench.report.pictures import draw
    except ImportError as error:
        log.info("no pictures are drawn: %s", error)
        return []
    return draw(measurements, directory)
