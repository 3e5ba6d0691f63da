"""Tables and pictures of the results.

python -m tests.bench.report RESULTS.json DIRECTORY
"""

import logging
from pathlib import Path

from tests.bench.report.document import document
from tests.bench.results import load_results

__all__ = ["render"]

log = logging.getLogger("tests.bench")


def render(results: Path, directory: Path) -> list[Path]:
    """Write README.md and its pictures; return their paths.

    An existing notes.md in the directory is included in the page.
    """
    content = load_results(results)
    directory.mkdir(parents=True, exist_ok=True)
    pictures = _draw_pictures(content["measurements"], directory)
    page = directory / "README.md"
    names = [picture.name for picture in pictures]
    notes = directory / "notes.md"
    notes_text = notes.read_text().strip() if notes.exists() else ""
    page.write_text(document(content, names, notes_text))
    return [page, *pictures]


def _draw_pictures(
    measurements: list[dict[str, object]], directory: Path
) -> list[Path]:
    try:
        from tests.bench.report.pictures import draw
    except ImportError as error:
        log.info("pictures are skipped: %s", error)
        return []
    return draw(measurements, directory)
