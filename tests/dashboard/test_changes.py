"""Changes: a plan is shown, confirmed once, run, and logged."""

import re
from contextlib import suppress

import anyio
import pytest

from sharecons import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.dashboard.changes import Changes
from sharecons.dashboard.guard import User
from sharecons.dashboard.plans import PLANS, Plan
from tests.dashboard.serving import HOSTILE, Page, dashboard
from tests.dead_letters.letters import DEAD, new_letter, produce_letters

pytestmark = pytest.mark.anyio

CHANGES = {"allow_changes": True}


@pytest.fixture
async def admin(broker):
    async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


async def planned(http, kind, **fields):
    """Plan a change; return the page, and the key that confirms it."""
    response = await http.post(f"/plan/{kind}", data=fields)
    found = re.search(r'name="plan" value="([^"]+)"', response.text)
    return Page(response.text), found and found[1]


async def confirmed(http, key):
    """Confirm a change; return the log of changes once it has ended."""
    response = await http.post("/confirm", data={"plan": key})
    assert (303, "/changes") == (response.status_code, response.headers["Location"])
    with anyio.fail_after(10):
        version = http.live.version
        while "running" in (page := Page((await http.get("/changes")).text)).text:
            version = await http.live.wait_for_change(version)
    return page


async def test_redrive_is_planned_then_run(broker, admin):
    broker.create_topic(DEAD)
    produce_letters(broker, [new_letter(number) for number in range(5)])

    async with dashboard(broker, **CHANGES) as http:
        fields = {
            "topic": DEAD,
            "filter": "key=k1 'key=k2'",
            "limit": "",
            "to": "",
        }
        page, key = await planned(http, "redrive", **fields, all="yes")
        assert "redrive 2 dead letters of orders.dead: 2 to orders" in page.text
        assert "orders.dead-0@1 to orders" in page.text
        assert not broker.records("orders", 0)
        log = await confirmed(http, key)

    assert "2 dead letters redriven" in log.text
    assert "local" in log.text
    values = {each.value for n in (0, 1) for each in broker.records("orders", n)}
    assert {b"v1", b"v2"} == values


async def test_selected_dead_letters_are_redriven(broker):
    broker.create_topic(DEAD)
    produce_letters(broker, [new_letter(number) for number in range(5)])

    async with dashboard(broker, **CHANGES) as http:
        page = await http.get("/letters", params={"topic": DEAD})
        positions = re.findall(r'name="position" value="([^"]+)"', page.text)
        nothing, _ = await planned(http, "redrive", topic=DEAD)
        fields = {"topic": DEAD, "position": [positions[1], positions[3]]}
        page, key = await planned(http, "redrive", **fields)
        await confirmed(http, key)

    assert "no dead letters are selected" in nothing.text
    assert "redrive 2 dead letters of orders.dead: 2 to orders" in page.text
    values = {each.value for n in (0, 1) for each in broker.records("orders", n)}
    assert {b"v1", b"v3"} == values


async def test_dead_letters_are_deleted_only_if_that_is_confirmed(broker):
    broker.create_topic(DEAD)
    produce_letters(broker, [new_letter(number) for number in range(5)])

    async with dashboard(broker, **CHANGES) as http:
        fields = {"topic": DEAD, "partition": "0", "offset": "3"}
        page, key = await planned(http, "delete-letters", **fields)
        refused = await confirmed(http, key)
        assert "3 dead letters, 3 of them not redriven" in page.text
        assert "failed" in refused.text
        assert 5 == len(broker.records(DEAD))
        _, key = await planned(http, "delete-letters", **fields, not_redriven="yes")
        done = await confirmed(http, key)

    assert "orders.dead-0: deleted before 3" in done.text


@pytest.mark.parametrize(("to", "offset"), [("earliest", 0), ("latest", 9), ("4", 4)])
async def test_start_offsets_are_set(broker, admin, to, offset):
    broker.produce("orders", [b"x"] * 9, partition=1)

    async with dashboard(broker, **CHANGES) as http:
        fields = {"group": "billing", "topic": "orders", "partition": "1", "to": to}
        page, key = await planned(http, "offsets", **fields)
        assert f"orders-1: none to {offset}" in page.text
        await confirmed(http, key)

    listed = (await admin.list_share_group_offsets("billing"))["billing"].value.found
    assert offset == listed[TopicPartition("orders", 1)].start_offset


async def test_config_is_set_and_reset(broker, admin):
    name = "share.record.lock.duration.ms"

    async def value():
        return (
            (await admin.describe_group_configs("billing"))["billing"].value[name].value
        )

    async with dashboard(broker, **CHANGES) as http:
        fields = {"group": "billing", "name": name}
        page, key = await planned(http, "config", **fields, value="20000")
        assert "30000 to 20000" in page.text
        await confirmed(http, key)
        assert "20000" == await value()
        _, key = await planned(http, "config", **fields, value="")
        await confirmed(http, key)
        assert "30000" == await value()


async def test_empty_group_is_deleted(broker, admin):
    start = {TopicPartition("orders", 0): 0}
    (await admin.alter_share_group_offsets("billing", start)).check()

    async with dashboard(broker, **CHANGES) as http:
        _, key = await planned(http, "delete-group", group="billing")
        log = await confirmed(http, key)

    assert "group billing is deleted" in log.text
    assert "billing" not in (await admin.list_groups()).groups


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        ("nothing", {}, "there is no change 'nothing'"),
        ("redrive", {}, "topic is missing"),
        ("redrive", {"topic": "none", "all": "1"}, "none"),
        (
            "redrive",
            {"topic": "orders", "all": "1", "filter": "x"},
            "is not FIELD=TEXT",
        ),
        ("redrive", {"topic": "orders", "all": "1", "limit": "-"}, "limit is a whole"),
        ("delete-letters", {"topic": "orders", "partition": "0"}, "offset is missing"),
        ("offsets", {"group": "g", "topic": "orders", "to": "soon"}, "to is a whole"),
        ("config", {"group": "g", "name": "share.foo", "value": "1"}, "share.foo"),
        (
            "config",
            {"group": "g", "name": "share.record.lock.duration.ms", "value": "1"},
            "1",
        ),
        ("delete-group", {"group": "none"}, "none"),
    ],
    ids=str,
)
async def test_error_of_a_change_is_on_the_page(broker, kind, fields, text):
    async with dashboard(broker, **CHANGES) as http:
        response = await http.post(f"/plan/{kind}", data=fields)

    page = Page(response.text)
    assert 422 == response.status_code
    assert "alarm" in [attrs.get("class") for _, attrs in page.tags]
    assert text in page.text


async def test_plan_is_confirmed_once_and_by_its_user(broker):
    secrets = {"token": "secret", "passwords": {"ann": "pw"}}
    async with dashboard(broker, **CHANGES, **secrets, auth=("ann", "pw")) as http:
        config = {"group": "g", "name": "share.auto.offset.reset", "value": "earliest"}
        _, key = await planned(http, "config", **config)
        token = {"Authorization": "Bearer secret"}
        other = await http.post(
            "/confirm", data={"plan": key}, headers=token, auth=None
        )
        first = await http.post("/confirm", data={"plan": key})
        again = await http.post("/confirm", data={"plan": key})
        unknown = await http.post("/confirm", data={"plan": "x"})

    assert [409, 303, 409, 409] == [
        each.status_code for each in (other, first, again, unknown)
    ]


async def test_change_with_an_unexpected_error_is_not_running_any_more(monkeypatch):
    async def run(progress):
        raise RuntimeError("a fault of the program")

    async def make(admin, fields):
        return Plan(what="break", items=(), count=1, run=run)

    monkeypatch.setitem(PLANS, "broken", make)
    changes, user = Changes(None, lambda: None), User("ann", "change")
    key, _ = await changes.plan("broken", {}, user)
    with suppress(ExceptionGroup):
        async with anyio.create_task_group() as changes.tasks:
            change = changes.confirm(key, user)

    assert "interrupted" == change.state


@pytest.mark.parametrize(
    "content", [b"x" * 100_000, b"a=1&" * 300], ids=["bytes", "fields"]
)
async def test_large_form_is_refused(broker, content):
    async with dashboard(broker, **CHANGES) as http:
        response = await http.post("/plan/redrive", content=content)

    assert 413 == response.status_code


async def test_pages_have_no_forms_of_changes_unless_they_are_allowed(broker):
    broker.create_topic(DEAD)
    produce_letters(broker, [new_letter(0)])
    start = {TopicPartition("orders", 0): 0}
    async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
        (await admin.alter_share_group_offsets("billing", start)).check()
    paths = (
        "/group?id=billing",
        f"/letters?topic={DEAD}",
        f"/letter?topic={DEAD}&partition=0&offset=0",
    )

    async def forms(**options):
        async with dashboard(broker, **options) as http:
            pages = [Page((await http.get(path)).text) for path in paths]
        return [
            sum(attrs.get("method") == "post" for _, attrs in page.tags)
            for page in pages
        ]

    reader = {"read_token": "r", "headers": {"Authorization": "Bearer r"}}
    assert [0, 0, 0] == await forms()
    assert [0, 0, 0] == await forms(**CHANGES, **reader)
    assert [3, 1, 1] == await forms(**CHANGES)


async def test_hostile_fields_do_nothing(broker):
    async with dashboard(broker, **CHANGES) as http:
        texts = [
            (await http.post("/plan/delete-group", data={"group": HOSTILE})).text,
            (
                await http.post("/plan/config", data={"group": "g", "name": HOSTILE})
            ).text,
            (await http.post("/plan/redrive", data={"topic": HOSTILE})).text,
        ]

    for text in texts:
        assert "img" not in [tag for tag, _ in Page(text).tags]
        assert "\x1b" not in text
