"""The pages that Zensical made: links, anchors, and entries of the API."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import sharecons
from tests.site import reference
from tests.site.navigation import entries

MarkdownIt = pytest.importorskip("markdown_it").MarkdownIt

BUILT = os.environ.get("SHARECONS_TEST_SITE")
HTML = Path(BUILT or "") / "html"

pytestmark = pytest.mark.skipif(BUILT is None, reason="tox -e site builds the site")


class Page(HTMLParser):
    """The anchors of a page, and the files that it links to or loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        for name in ("id", "name"):
            self.anchors.add(values.get(name) or "")
        if tag == "a":
            self.links.append(values.get("href") or "")
        elif address := values.get("src") or (
            values.get("href") if tag == "link" else None
        ):
            self.loaded.append(address)


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    return {path: Page(path) for path in HTML.rglob("*.html")}


@pytest.mark.slow("parses all pages")
def test_links_lead_to_files_and_anchors(pages: dict[Path, Page]) -> None:
    broken = []
    for page in pages.values():
        if page.path.name == "404.html":
            continue  # its links are absolute
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = page.path
            if parts.path:
                target = Path(os.path.normpath(page.path.parent / unquote(parts.path)))
                if target.is_dir():
                    target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.exists() or (
                anchor and target in pages and anchor not in pages[target].anchors
            ):
                broken.append(f"{page.path.relative_to(HTML)}: {link}")

    assert sorted(broken) == []


@pytest.mark.slow("parses all pages")
def test_pages_load_no_file_of_another_host(pages: dict[Path, Page]) -> None:
    loaded = {link for page in pages.values() for link in page.loaded}

    assert [link for link in sorted(loaded) if urlsplit(link).netloc] == []


@pytest.mark.slow("parses all pages")
def test_each_exported_name_is_an_anchor(pages: dict[Path, Page]) -> None:
    anchors = {
        anchor
        for path, page in pages.items()
        if path.parent.parent.name == "api"
        for anchor in page.anchors
    }
    listed = {path for name in reference.PAGES for path in reference.names_of(name)}

    assert len(listed) > len(sharecons.__all__)
    assert sorted(listed - anchors) == []


@pytest.mark.slow("renders all pages")
@pytest.mark.parametrize("tag", ["li", "pre", "table"])
def test_pages_have_the_lists_code_and_tables_that_github_shows(tag: str) -> None:
    """Python-Markdown needs four spaces before the content of a list item."""
    commonmark = MarkdownIt("commonmark").enable("table")
    different = []
    for entry in entries():
        if entry.page.startswith("api/"):
            continue
        path = HTML / entry.page.removesuffix(".md") / "index.html"
        if path.parent.name in ("index", "README"):
            path = path.parent.parent / "index.html"
        article = path.read_text().partition("<article")[2].partition("</article>")[0]
        text = commonmark.render((HTML / entry.page).read_text())
        counts = [len(re.findall(f"<{tag}[ >]", each)) for each in (text, article)]
        if counts[0] != counts[1]:
            different.append(
                f"{entry.page}: {counts[0]} {tag}, on the site {counts[1]}"
            )

    assert different == []
