"""Where files of the repository are on the site, and the links to them."""

import os
import re
from pathlib import Path, PurePosixPath

__all__ = ["LINK", "ROOT", "example_page", "examples_index", "place", "rewrite_links"]

ROOT = Path(__file__).parents[2]

LINK = re.compile(r"(?<=\]\()((?!\w+:)[^)\s#]+)")
"""The path of a link to a file, without its anchor."""

MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "examples": "examples/index.md",
}


def place(path: str) -> str:
    """Return the path on the site of a file of the repository.

    Raises LookupError for files that are not on the site.
    """
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("examples/") and path.endswith(".py"):
        return path.removesuffix(".py") + ".md"
    raise LookupError(f"{path} is not on the site: tests/site/layout.py places files")


def rewrite_links(text: str, path: str) -> str:
    """Return the Markdown of a file with links to files as they are on the site."""
    here = PurePosixPath(place(path)).parent

    def moved(match: re.Match[str]) -> str:
        target = os.path.normpath(PurePosixPath(path).parent / match[1])
        if not (ROOT / target).exists():
            return match[1]  # a link to a page that is generated, or code
        return os.path.relpath(place(target), here)

    return LINK.sub(moved, text)


def example_page(file: Path) -> str:
    """Return the page of a program in examples/."""
    return f"# {file.name}\n\n```python\n{file.read_text()}```\n"


def examples_index(files: list[Path]) -> str:
    """Return the page that lists the programs, with their first lines."""
    rows = []
    for file in files:
        summary = file.read_text().partition('"""')[2].partition("\n")[0].strip('"')
        rows.append(f"- [{file.name}]({file.stem}.md): {summary}\n")
    return "# Examples\n\nPrograms that the tests run.\n\n" + "".join(rows)
