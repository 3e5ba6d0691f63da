"""Pages in Chromium: they request no other host, and fit the width of a phone."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

BUILT = os.environ.get("SHARECONS_TEST_SITE")
HTML = Path(BUILT or "") / "html"
PAGES = ("", "worker-retries/", "comparison/", "api/consumer/", "design/")

pytestmark = [
    pytest.mark.skipif(BUILT is None, reason="tox -e site builds the site"),
    pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium"),
]


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = partial(Handler, directory=str(HTML))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.mark.slow("starts Chromium", seconds=20)
def test_pages_request_no_other_host_and_fit_a_phone(
    address: str, chromium: Any
) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 800})
    page.set_default_timeout(20_000)
    requested: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))

    for path in PAGES:
        page.goto(address + path, wait_until="domcontentloaded")
        page.wait_for_selector("article h1")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, path

    others = (address, "data:", "blob:")
    assert [url for url in requested if not url.startswith(others)] == []
    assert errors == []


@pytest.mark.slow("starts Chromium", seconds=20)
def test_search_finds_a_page(address: str, chromium: Any) -> None:
    page = chromium.new_page(viewport={"width": 1440, "height": 800})
    page.set_default_timeout(20_000)
    page.goto(address, wait_until="domcontentloaded")
    page.keyboard.press("Control+k")
    page.keyboard.type("redrive")

    page.wait_for_selector("a[href*='dead-letters']:has-text('redrive')")
