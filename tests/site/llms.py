"""llms.txt, in the form of llmstxt.org: the sections and pages of the navigation."""

import re
import shutil
import tomllib
from pathlib import Path

from tests.site.navigation import CONFIG, Entry, entries

__all__ = ["index", "summary", "write"]

NO_PROSE = re.compile(r"#|```|\||[-*] |\d+\.|!\[|\[\w+\]:|:::|<\w+|    ")
"""The start of a block that is no prose: a heading, code, a table, a list."""


def write(docs: Path, html: Path) -> None:
    """Write llms.txt, and the Markdown of each page beside its HTML."""
    texts = {entry.page: (docs / entry.page).read_text() for entry in entries()}
    (html / "llms.txt").write_text(index(texts))
    for page in texts:
        shutil.copy(docs / page, html / page)


def index(texts: dict[str, str]) -> str:
    """Return llms.txt, from the Markdown of the pages."""
    project = tomllib.loads(CONFIG.read_text())["project"]
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}"]
    section = None
    for entry in entries():
        if (first := (*entry.sections, entry.title)[0]) != section:
            section = first
            lines += ["", f"## {section}", ""]
        lines.append(_line(entry, texts[entry.page]))
    return "\n".join(lines) + "\n"


def _line(entry: Entry, text: str) -> str:
    title = text.partition("\n")[0].removeprefix("# ")
    return f"- [{title}]({entry.page}): {summary(text)}"


def summary(text: str) -> str:
    """Return the first sentence of a page's prose, without marks."""
    for block in re.split(r"\n\s*\n", text)[1:]:
        if not NO_PROSE.match(block):
            plain = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[\w*\])", r"\1", block)
            plain = " ".join(re.sub(r"[`*<>]", "", plain).split())
            plain = plain.partition("Here: ")[2] or plain
            return re.split(r"(?<=[.?])\s", plain)[0].rstrip(":.")
    raise ValueError(f"no prose: {text[:60]!r}")
