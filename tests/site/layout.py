"""Where files of the repository are on the site, and the links to them."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = [
    "MOVED",
    "ROOT",
    "examples_index",
    "linked_files",
    "place",
    "rewrite_links",
    "source_page",
]

ROOT = Path(__file__).parents[2]

LINK = re.compile(r"(?:(?<=\]\()|(?<=\]: ))((?!\w+:)[^)\s#]+)")
"""The path of a link to a file, without its anchor."""

MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "examples": "examples/index.md",
}
"""The places of what is not in docs/ and has a page of its own in the navigation."""


def place(path: str) -> str:
    """Return the path on the site of a file of the repository.

    A file outside of docs/ has a page with its text. Raises LookupError for other
    directories.
    """
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        raise LookupError(f"{path} is not on the site: link to a file of it")
    return str(PurePosixPath(path).with_suffix(".md"))


def rewrite_links(text: str, path: str) -> str:
    """Return the Markdown of a file with links to files as they are on the site."""
    here = PurePosixPath(place(path)).parent

    def moved(match: re.Match[str]) -> str:
        target = _target(match, path)
        # Others are links to generated pages, and code.
        exists = (ROOT / target).exists()
        return os.path.relpath(place(target), here) if exists else match[1]

    return LINK.sub(moved, text)


def linked_files(text: str, path: str) -> Iterator[str]:
    """Yield the files outside of docs/ that a file links to, and that have no page."""
    for match in LINK.finditer(text):
        target = _target(match, path)
        elsewhere = target not in MOVED and not target.startswith("docs/")
        if elsewhere and (ROOT / target).is_file():
            yield target


def _target(match: re.Match[str], path: str) -> str:
    return os.path.normpath(PurePosixPath(path).parent / match[1])


def source_page(path: str) -> str:
    """Return the page with the text of a file; search leaves out all but examples/."""
    file = ROOT / path
    searched = path.startswith("examples/")
    head = "" if searched else "---\nsearch:\n  exclude: true\n---\n\n"
    language = "python" if file.suffix == ".py" else file.suffix.removeprefix(".")
    name = file.name if searched else path
    return f"{head}# {name}\n\n````{language}\n{file.read_text()}````\n"


def examples_index(files: list[Path]) -> str:
    """Return the page that lists the programs, with their first lines."""
    rows = []
    for file in files:
        summary = file.read_text().partition('"""')[2].partition("\n")[0].strip('"')
        rows.append(f"- [{file.name}]({file.stem}.md): {summary}\n")
    return "# Examples\n\nPrograms that the tests run.\n\n" + "".join(rows)
