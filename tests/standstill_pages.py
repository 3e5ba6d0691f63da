"""The pages of `sharecons dashboard` about a group: their signs, and pictures."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from tests.cli.processes import start
from tests.waiting import until_true

__all__ = ["Pages", "dashboard"]

SIGNS: Final = {"alarm", "old", "findings"}
"""Classes of the elements that say what is wrong."""

VOID: Final = ("input", "meta", "link", "br")
WIDTH: Final = 1000


class Pages:
    """The pages of a dashboard about a group."""

    def __init__(self, url: str, group: str) -> None:
        self._url = url
        self._group = group

    @property
    def group_url(self) -> str:
        return f"{self._url}group?id={quote(self._group)}"

    def has_group(self) -> bool:
        """Return whether the group has been read."""
        with suppress(HTTPError):
            return bool(_signs(self.group_url))
        return False

    def read(self) -> tuple[str, str, str]:
        """Return what the pages of the group, of all groups and of workers say.

        These are the alarms, the findings, and the row of the group.
        """
        urls = self.group_url, self._url, f"{self._url}workers"
        group, overview, workers = map(_signs, urls)
        return group, overview, workers

    def save_picture(self, path: Path) -> None:
        """Save the whole page of the group as a PNG file."""
        from playwright.sync_api import sync_playwright

        chromium = shutil.which("chromium")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": WIDTH, "height": 700})
            # Events keep the network busy: wait for the content, no longer.
            page.goto(self.group_url, wait_until="domcontentloaded")
            page.screenshot(path=path, full_page=True)
            browser.close()


@contextmanager
def dashboard(servers: str, group: str, health: str | None) -> Iterator[Pages]:
    """Run `sharecons dashboard` as a process, for a group and perhaps a worker."""
    workers = () if health is None else ("--worker", health)
    options = ("--port", "0", "--interval", "0.5", "--group", group, *workers)
    broker = SimpleNamespace(bootstrap_servers=servers)
    with start(broker, "dashboard", *options, stderr=None) as process:
        url = process.stdout.readline().decode().split()[-1]
        pages = Pages(url, group)
        # The first request begins the collections. Brokers can be stopped after one.
        until_true(pages.has_group, pause=0.2)
        yield pages


def _signs(url: str) -> str:
    with urlopen(url, timeout=20) as response:
        return _Signs(response.read().decode()).text


class _Signs(HTMLParser):
    """The text within SIGNS, and in the cells of the overview."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self._open: list[bool] = []
        self._words: list[str] = []
        self.feed(page)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._words).split()) or "-"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            classes = (dict(attrs).get("class") or "").split()
            is_sign = bool(SIGNS.intersection(classes))
            self._open.append(is_sign or any(self._open[-1:]))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if any(self._open[-1:]):
            self._words.append(data)
