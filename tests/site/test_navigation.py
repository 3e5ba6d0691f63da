"""The navigation has each page once; llms.txt and the API pages follow from it."""

import re
from collections import Counter

import pytest

import sharecons
from tests.site import llms, reference
from tests.site.build import generated_pages
from tests.site.layout import MOVED, ROOT, rewrite_links
from tests.site.navigation import entries

DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text()
    for path in sorted(DOCS.rglob("*.md"))
    if path.name != "notes.md"  # a part of the page beside it
}
WORDS = 3000


def test_each_page_is_in_the_navigation_once() -> None:
    # Other generated pages have the text of files that pages link to.
    reference_pages = {f"api/{name}.md" for name in reference.PAGES}
    expected = {*PAGES, *MOVED.values(), *reference_pages}
    found = Counter(entry.page for entry in entries())

    assert sorted(expected - found.keys()) == [], "in no section of docs/zensical.toml"
    assert sorted(found.keys() - expected) == [], "no pages of docs/"
    assert [page for page, count in found.items() if count > 1] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if not page.startswith("performance/")]
)
def test_page_is_short(page: str) -> None:
    assert len(PAGES[page].split()) <= WORDS, "split it, or move facts to other pages"


def test_index_of_llms_has_a_line_per_page() -> None:
    texts = PAGES | generated_pages()

    title, _, summary, *lines = llms.index(texts).splitlines()

    assert title == "# sharecons"
    assert summary.startswith("> ")
    links = [line for line in lines if line and not line.startswith("## ")]
    assert len(links) == len(entries())
    for line in links:
        assert re.fullmatch(r"- \[[^]#]+\]\([\w./-]+\.md\): .{8,}", line), line


def test_each_exported_name_has_an_entry() -> None:
    listed = {path for name in reference.PAGES for path in reference.names_of(name)}
    top = {f"sharecons.{name}" for name in sharecons.__all__}

    assert top <= listed
    for _, modules in reference.PAGES.values():
        for module in modules:
            for name in reference.exports(module):
                assert {f"{module}.{name}", f"sharecons.{name}"} & listed


@pytest.mark.parametrize(
    ("path", "link", "expected"),
    [
        ("docs/worker.md", "consumer.md#locks", "consumer.md#locks"),
        ("docs/worker.md", "../examples/cpu_jobs.py", "examples/cpu_jobs.md"),
        ("docs/performance/2026-11-27/tests.md", "../../design.md", "../../design.md"),
        (
            "docs/performance/2026-11-27/tests.md",
            "../../../README.md",
            "../../index.md",
        ),
        ("CHANGELOG.md", "docs/worker.md#x", "worker.md#x"),
        ("CHANGELOG.md", "examples/cpu_jobs.py", "examples/cpu_jobs.md"),
        ("CHANGELOG.md", "examples", "examples/index.md"),
        ("docs/worker.md", "../tests/test_docs.py", "tests/test_docs.md"),
        ("docs/worker.md", "inspect.svg", "inspect.svg"),
        ("docs/worker.md", "api/worker.md", "api/worker.md"),
    ],
)
def test_link_to_a_file_leads_to_its_page(path: str, link: str, expected: str) -> None:
    assert rewrite_links(f"[x]({link})", path) == f"[x]({expected})"


def test_link_to_a_directory_that_is_not_on_the_site_raises() -> None:
    with pytest.raises(LookupError, match="tests is not on the site"):
        rewrite_links("[x](../tests)", "docs/worker.md")
