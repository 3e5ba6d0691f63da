"""Lays out the pages of the site and runs Zensical."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.site import llms, reference
from tests.site.layout import (
    ROOT,
    examples_index,
    linked_files,
    place,
    rewrite_links,
    source_page,
)
from tests.site.navigation import CONFIG

__all__ = ["build", "generated_pages", "lay_out"]


def generated_pages() -> dict[str, str]:
    """Return the text of the pages that are no files of docs/, by path on the site."""
    files = sorted((ROOT / "examples").glob("*.py"))
    pages = {f"api/{name}.md": reference.page(name) for name in reference.PAGES}
    pages["examples/index.md"] = examples_index(files)
    sources = {f"examples/{file.name}" for file in files}
    for page in (ROOT / "docs").rglob("*.md"):
        sources |= {*linked_files(page.read_text(), str(page.relative_to(ROOT)))}
    pages |= {place(path): source_page(path) for path in sources}
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        if (ROOT / name).exists():
            pages[place(name)] = rewrite_links((ROOT / name).read_text(), name)
    return pages


def lay_out(directory: Path) -> None:
    """Write the sources of the site: docs/, the generated pages, the package."""
    docs = directory / "docs"
    # The notes are parts of the performance pages beside them.
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("notes.md"))
    for file in docs.rglob("*.md"):
        path = f"docs/{file.relative_to(docs).as_posix()}"
        file.write_text(rewrite_links(file.read_text(), path))
    for path, text in generated_pages().items():
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text(text)
    shutil.copytree(ROOT / "sharecons", directory / "source" / "sharecons")
    shutil.move(docs / CONFIG.name, directory)


def build(directory: Path) -> Path:
    """Build the site; warnings fail. Return the directory of its pages."""
    shutil.rmtree(directory, ignore_errors=True)
    lay_out(directory)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    run = subprocess.run(command, cwd=directory, stderr=subprocess.PIPE, text=True)
    # Zensical does not count griffe's warnings about docstrings.
    if run.returncode or "griffe: " in run.stderr:
        sys.exit(run.stderr)
    llms.write(directory / "docs", directory / "html")
    return directory / "html"
