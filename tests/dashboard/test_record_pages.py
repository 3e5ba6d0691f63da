"""The pages of records and dead letters, and of the cluster."""

import pytest

from tests.dashboard.serving import HOSTILE, Page, dashboard
from tests.dead_letters.letters import DEAD, new_letter, produce_letters

pytestmark = pytest.mark.anyio


async def shown(http, path, **query):
    response = await http.get(path, params=query)
    assert 200 == response.status_code
    return Page(response.text)


async def test_newest_records_are_shown_or_those_from_an_offset(broker):
    broker.produce("orders", [b"value-%d" % n for n in range(50)], partition=1)

    async with dashboard(broker) as http:
        newest = await shown(http, "/records", topic="orders")
        first = await shown(http, "/records", topic="orders", **{"from": 0})
        later = await shown(
            http, "/records", topic="orders", partition=1, **{"from": 40}
        )

    assert "orders-1@49" in newest.text
    assert "orders-1@29" not in newest.text
    assert "orders-1@0 " in first.text
    assert "value-40" in later.text
    assert "value-39" not in later.text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"topic": "none"}, "none"),
        ({"topic": "a b"}, "topic"),
        ({"topic": "../x"}, "topic"),
        ({"topic": "orders", "from": "x"}, "from is a whole number, not 'x'"),
        ({"topic": "orders", "from": "9" * 20}, "from is a whole number, not '999"),
        ({"topic": "orders", "partition": "-1"}, "partition is a whole number"),
        ({"topic": "orders", "partition": "7"}, "orders-7"),
        ({"topic": "orders", "from": "99"}, "99"),
    ],
    ids=str,
)
async def test_error_of_a_place_is_on_the_page(broker, query, text):
    broker.produce("orders", [b"x"])

    async with dashboard(broker) as http:
        page = await shown(http, "/records", **query)

    problems = [
        attrs for _, attrs in page.tags if attrs.get("class") in ("alarm", "old")
    ]
    assert problems
    assert text in page.text


async def test_hostile_records_and_letters_do_nothing(broker):
    broker.create_topic(DEAD)
    headers = ((HOSTILE, HOSTILE.encode()),)
    broker.produce(
        "orders", [HOSTILE.encode()], keys=[HOSTILE.encode()], headers=headers
    )
    produce_letters(
        broker,
        [
            new_letter(
                0, headers=headers, reason=HOSTILE, exception=HOSTILE, group=HOSTILE
            )
        ],
    )
    paths = (
        ("/records", {"topic": "orders"}),
        ("/letters", {"topic": DEAD}),
        ("/letters", {"topic": HOSTILE, "filter": HOSTILE}),
        ("/letter", {"topic": DEAD, "partition": 0, "offset": 0}),
        ("/preflight", {"topic": HOSTILE, "group": HOSTILE}),
    )

    async with dashboard(broker) as http:
        texts = [(await http.get(path, params=query)).text for path, query in paths]

    for text in texts:
        page = Page(text)
        assert "img" not in [tag for tag, _ in page.tags]
        assert not [
            name for _, attrs in page.tags for name in attrs if name[:2] == "on"
        ]
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<img src=x onerror=alert(1)>" in Page(texts[0]).text


async def test_values_are_hidden_if_they_must_be(broker):
    broker.create_topic(DEAD)
    headers = [("h", b"secret")]
    broker.produce(
        "orders", [b"secret"], keys=[b"secret"], headers=headers, partition=0
    )
    produce_letters(broker, [new_letter(1, headers=(("trace", b"v1"),))])

    async with dashboard(broker, hide_values=True) as http:
        records = await shown(http, "/records", topic="orders")
        letter = await shown(http, "/letter", topic=DEAD, partition=0, offset=0)

    assert "orders-0@0" in records.text
    assert "secret" not in records.text
    assert "failed: ValueError: 1" in letter.text
    assert "v1" not in letter.text


async def test_letters_are_filtered_and_on_pages(broker):
    broker.create_topic(DEAD)
    produce_letters(broker, [new_letter(number) for number in range(60)])

    async with dashboard(broker) as http:
        first = await shown(http, "/letters", topic=DEAD)
        (following,) = [
            each["href"] for tag, each in first.tags if each.get("rel") == "next"
        ]
        second = Page((await http.get(following)).text)
        seven = await shown(http, "/letters", topic=DEAD, filter="key=k7")
        redriven = await shown(http, "/letters", topic=DEAD, redriven="yes")

    assert "0:49" in first.text
    assert "0:50" not in first.text
    assert "0:59" in second.text
    assert "orders-1@7" in seven.text
    assert "orders-0@8" not in seven.text
    assert "No dead letter matches" in redriven.text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"filter": "group_=x"}, "did you mean"),
        ({"filter": "x"}, "is not FIELD=TEXT"),
        ({"redriven": "perhaps"}, "yes or no"),
        ({"topic": "none"}, "none"),
    ],
    ids=str,
)
async def test_error_of_a_filter_is_on_the_page(broker, query, text):
    broker.create_topic(DEAD)

    async with dashboard(broker) as http:
        page = await shown(http, "/letters", **{"topic": DEAD, **query})

    assert text in page.text


async def test_letter_has_its_reason_origin_and_record(broker):
    broker.create_topic(DEAD)
    reason = "failed: ValueError: no card\nTraceback:\n  in charge, app.py:7"
    produce_letters(broker, [new_letter(3, reason=reason)])

    async with dashboard(broker) as http:
        page = await shown(http, "/letter", topic=DEAD, partition=0, offset=0)
        missing = await http.get(
            "/letter", params={"topic": DEAD, "partition": 0, "offset": 9}
        )

    assert "in charge, app.py:7" in page.text
    assert "/records?topic=orders&partition=1&from=3" in page.links
    assert "k3" in page.text
    assert "v3" in page.text
    assert "builtins.ValueError" in page.text
    assert 404 == missing.status_code


async def test_cluster_has_the_checks_of_preflight(broker):
    async with dashboard(broker) as http:
        page = await shown(http, "/preflight", topic="orders", group="billing")

    assert "topic orders ok 2 partitions" in page.text
    assert "group billing ok does not exist yet" in page.text
