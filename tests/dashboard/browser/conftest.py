"""Chromium, and dashboards of groups in known states.

SHARECONS_TEST_PICTURES=DIR saves a picture of each page there.
"""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.dashboard.browser.scene import make_scene, served

PICTURES = os.environ.get("SHARECONS_TEST_PICTURES")


@pytest.fixture(scope="session")
def apart():
    """Run functions in another thread: Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        yield lambda function, *args: threads.submit(function, *args).result()


@pytest.fixture(scope="module")
def scene(any_kafka, apart):
    return apart(make_scene, any_kafka)


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # In a container as root, there is no sandbox.
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A page that fails the test if its script fails, or requests another host."""
    context = chromium.new_context(viewport={"width": 1000, "height": 700})
    page = context.new_page()
    page.set_default_timeout(10_000)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda line: problems.append(line.text) if line.type == "error" else None,
    )
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith("http://127.0.0.1:")
            else problems.append(request.url)
        ),
    )
    yield page
    context.close()
    assert [] == problems


@pytest.fixture(scope="module")
def dashboard(scene):
    """The address of a dashboard of the scene, with changes and a worker."""
    with served(scene) as url:
        yield url


@pytest.fixture
def picture(page, scene):
    """Save a picture of the page, if pictures are wanted."""

    def save(name):
        if PICTURES is not None:
            path = Path(PICTURES) / scene.kind / f"{name}.png"
            page.screenshot(path=path, full_page=True)

    return save
