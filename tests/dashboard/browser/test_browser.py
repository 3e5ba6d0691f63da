"""All pages in Chromium: widths, light and dark, accessibility, values, changes."""

import json
import re
import shutil
from urllib.parse import urlencode

import pytest

from tests.cli.run_cli import run_cli
from tests.dashboard.browser.scene import PARTITIONS
from tests.waiting import until_true

pytest.importorskip("playwright.sync_api", reason="`tox -e browser` has Playwright")
if shutil.which("chromium") is None:
    pytest.skip("Chromium: apt-get install chromium", allow_module_level=True)

pytestmark = pytest.mark.slow("a browser, and a dashboard in a process")

WIDTHS = (400, 800, 1400)
SCHEMES = ("light", "dark")
PAGES = (
    "overview",
    "group",
    "wide",
    "hostile",
    "letters",
    "letter",
    "records",
    "workers",
    "preflight",
    "changes",
)


def address(dashboard, scene, name):
    """Return the address of a page."""
    paths = {
        "overview": "",
        "group": f"group?{urlencode({'id': scene.group})}",
        "wide": f"group?{urlencode({'id': scene.wide})}",
        "hostile": f"group?{urlencode({'id': scene.hostile})}",
        "letters": f"letters?topic={scene.dead}",
        "letter": f"letter?topic={scene.dead}&partition=0&offset=2",
        "records": f"records?topic={scene.topic}&from=7",
        "workers": "workers",
        "preflight": "preflight",
        "changes": "changes",
    }
    return dashboard + paths[name]


def opened(page, dashboard, scene, name):
    # A page with events never gets idle.
    page.goto(address(dashboard, scene, name), wait_until="domcontentloaded")
    page.wait_for_selector("h1")


def serious(page):
    """Return what axe-core finds: rules with the elements that break them."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        (each["id"], [node["html"][:120] for node in each["nodes"]][:3])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("name", PAGES)
def test_page_fits_each_width_and_is_accessible(page, dashboard, scene, picture, name):
    opened(page, dashboard, scene, name)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            shown = page.evaluate("document.documentElement.scrollWidth")
            picture(f"{name}-{scheme}-{width}")
            assert shown <= width
        assert [] == serious(page)


def test_values_are_equal_to_those_of_inspect(page, dashboard, scene, apart):
    command = ("groups", "inspect", scene.group, "--json")
    servers = ("--bootstrap-server", scene.bootstrap_servers)
    inspected = json.loads(apart(lambda: run_cli(*command, *servers)).out)

    opened(page, dashboard, scene, "group")

    (partition,) = inspected
    cells = page.locator("section#partitions tr.numbers").first.locator("td")
    texts = [text.split("\n")[0] for text in cells.all_inner_texts()]
    start, end = partition["start_offset"], partition["end_offset"]
    lag = end - start - partition["acknowledged"] - partition["archived"]
    assert ["0", str(start), str(end), str(lag)] == texts[:4]
    label = page.locator("svg.bar").first.get_attribute("aria-label")
    for found in partition["ranges"]:
        assert found["status"].split("_")[0] in label, label
    for finding in partition["findings"]:
        start = re.split(r"\d+ (ms|s|min)", finding["text"])[0]
        assert start in page.locator("main").inner_text()


def test_wide_group_has_pages_and_is_small(page, dashboard, scene):
    response = page.goto(
        address(dashboard, scene, "wide"), wait_until="domcontentloaded"
    )

    assert len(response.body()) <= 100 << 10
    rows = page.locator("section#partitions tr.numbers")
    assert 50 == rows.count()
    page.click("text=Next")
    page.wait_for_selector("text=page 2 of 10")
    assert "50" == rows.first.locator("td").first.inner_text()
    page.click("text=largest lag first")
    page.wait_for_selector("text=in their order")
    lags = [row.locator("td").nth(3).inner_text() for row in rows.all()[:3]]
    assert ["7", "7", "7"] == lags
    assert PARTITIONS == 500


def test_hostile_texts_do_nothing(page, dashboard, scene):
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for name in ("overview", "hostile", "letters", "letter"):
        opened(page, dashboard, scene, name)
        assert 0 == page.locator("img").count()
        if name != "letters":
            assert "<img src=x" in page.locator("main").inner_text()

    assert "\x1b" not in page.content()


def test_keyboard_reaches_the_content_and_each_link(page, dashboard, scene):
    opened(page, dashboard, scene, "overview")

    page.keyboard.press("Tab")
    assert "Skip to content" == page.evaluate("document.activeElement.innerText")
    page.keyboard.press("Enter")
    assert "content" == page.evaluate("document.activeElement.id")
    reached = []
    for _ in range(10):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('href')"))
    assert any("group?id=" in (each or "") for each in reached)


def version(page):
    return int(page.get_attribute("#content", "data-version"))


def after_updates(page, count=2):
    """Return the version that is shown once there are newer ones."""
    before = page.evaluate("latest")
    until_true(lambda: page.evaluate("latest") >= before + count, pause=0.1)
    # An update is a request and its response.
    page.wait_for_timeout(300)
    return version(page)


def test_updates_wait_for_a_selection_and_a_form(page, dashboard, scene):
    opened(page, dashboard, scene, "group")
    first = version(page)
    assert after_updates(page) > first

    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    held = version(page)
    assert held == after_updates(page)
    assert "updates wait" in page.inner_text("#updates")
    page.evaluate("getSelection().removeAllRanges()")
    until_true(lambda: version(page) > held, pause=0.1)

    page.fill("input[name=value]", "20000")
    held = version(page)
    assert held == after_updates(page)
    page.evaluate("document.activeElement.blur()")
    assert held == after_updates(page)
    page.fill("input[name=value]", "")
    page.evaluate("document.activeElement.blur()")
    until_true(lambda: version(page) > held, pause=0.1)


def confirmed(page):
    """Confirm a plan; return the results on the page of changes."""
    page.click("text=Confirm")
    page.wait_for_selector("h1:text('Changes')")
    row = page.locator("tbody tr").first
    row.locator("text=/done|failed/").wait_for()
    return row.inner_text()


def test_selected_dead_letters_are_redriven_then_deleted(
    page, dashboard, scene, picture
):
    opened(page, dashboard, scene, "letters")
    page.check("input[value='0:1']")
    page.check("input[value='0:3']")
    page.fill("input[name=to]", scene.topic)
    page.click("text=Redrive the selected")
    page.wait_for_selector(f"text=redrive 2 dead letters of {scene.dead}")
    picture("plan")
    assert [] == serious(page)
    assert "2 dead letters redriven" in confirmed(page)
    picture("changes-made")

    page.goto(f"{dashboard}letter?topic={scene.dead}&partition=0&offset=0")
    page.check("input[name=not_redriven]")
    page.click("text=Delete this dead letter")
    assert "deleted before 1" in confirmed(page)


def test_group_is_changed_and_deleted(page, dashboard, scene):
    page.goto(f"{dashboard}group?{urlencode({'id': scene.empty})}")
    page.fill("input[name=name]", "share.record.lock.duration.ms")
    page.fill("input[name=value]", "20000")
    page.click("text=Set config")
    page.wait_for_selector("text=30000 to 20000")
    assert "is 20000" in confirmed(page)

    page.goto(f"{dashboard}group?{urlencode({'id': scene.empty})}")
    page.fill("input[name=topic]", scene.topic)
    page.fill("input[name=to]", "latest")
    page.click("text=Set start offsets")
    page.wait_for_selector("text=/0: 0 to \\d+/")
    assert "DONE" in confirmed(page)

    page.goto(f"{dashboard}group?{urlencode({'id': scene.empty})}")
    page.click("text=Delete the group")
    assert f"group {scene.empty} is deleted" in confirmed(page)
