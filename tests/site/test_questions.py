"""The questions of a newcomer have responses within two clicks of the first page."""

import re
from functools import cache

import pytest

from tests.site.layout import LINK, ROOT
from tests.site.navigation import entries

DOCS = ROOT / "docs"

QUESTIONS = {
    "how to retry after a minute": (
        "faq.md#how-do-i-retry-after-a-minute",
        "RetryPolicy(initial=60.0, maximum=60.0)",
    ),
    "why a record came twice": (
        "faq.md#why-did-a-record-come-twice",
        "Its delivery ended without an accept",
    ),
    "why nothing arrives": (
        "stuck.md#nothing-arrives-at-all",
        "a new group starts at the end",
    ),
    "which records become dead letters": (
        "worker-dead-letters.md#what-becomes-a-dead-letter",
        "failed in its last attempt",
    ),
    "how many partitions are needed": (
        "sizing.md#in-short",
        "Partitions: enough for the window",
    ),
    "how to move from aiokafka": (
        "coming-from/aiokafka.md#what-maps-to-what",
        "AIOKafkaConsumer",
    ),
    "what SIGTERM does": (
        "worker-running.md#stopping",
        "SIGTERM, SIGINT (Ctrl-C) and worker.stop() do the same",
    ),
    "how to test without Docker": (
        "testing.md#the-embedded-broker",
        "async def test_orders_are_charged(share_broker)",
    ),
    "how to see the lag": (
        "faq.md#how-do-i-see-the-lag",
        "sharecons groups inspect billing --watch",
    ),
    "what happens if Kafka is down at the start": (
        "deployment.md#kafka-is-down-at-the-start",
        "tries for --timeout (30 s), then exits with 3",
    ),
    "how to process a key in order": (
        "worker-concurrency.md#order-by-key",
        "key_order=True",
    ),
    "what happens if a handler hangs": (
        "faq.md#what-if-a-handler-hangs",
        "Give each handler a timeout",
    ),
    "how to deploy on Kubernetes": (
        "deployment.md#kubernetes",
        "worker.yaml has a Deployment and a PodDisruptionBudget",
    ),
    "how to trace a record": (
        "opentelemetry.md#spans",
        "continue the trace of the record",
    ),
    "which managed Kafka works": (
        "which-kafka.md#services-and-other-brokers",
        "Confluent Cloud",
    ),
}
"""The page and section with the response to each question, and words of it."""


@cache
def clicks() -> dict[str, int]:
    """Return the least number of clicks from the first page to each page.

    A click follows a link, or an entry of the navigation: to the first page of a
    section, or to another page of the section that is open.
    """
    found = {"index.md": 0}
    waiting = ["index.md"]
    for page in waiting:
        for target in {*links_of(page), *neighbours(page)} - found.keys():
            found[target] = found[page] + 1
            waiting.append(target)
    return found


def links_of(page: str) -> set[str]:
    text = (DOCS / page).read_text()
    targets = {(DOCS / page).parent / match[1] for match in LINK.finditer(text)}
    return {
        str(target.resolve().relative_to(DOCS))
        for target in targets
        if target.suffix == ".md" and DOCS in target.resolve().parents
    }


def neighbours(page: str) -> set[str]:
    first: dict[str | None, str] = {}
    for entry in entries():
        first.setdefault((*entry.sections, entry.title)[0], entry.page)
    here = {entry.sections for entry in entries() if entry.page == page}
    same = {entry.page for entry in entries() if entry.sections in here}
    return {name for name in {*first.values(), *same} if (DOCS / name).exists()}


def section(page: str, anchor: str) -> str:
    """Return the words of a section, with those below it, without marks."""
    text = (DOCS / page).read_text()
    for match in re.finditer(r"^(#+) (.*)$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", match[2].lower()).replace(" ", "-")
        if name == anchor:
            rest = text[match.end() :]
            end = re.search(rf"^#{{1,{len(match[1])}}} ", rest, re.MULTILINE)
            return plain(rest[: end.start()] if end else rest)
    raise LookupError(f"{page} has no section {anchor}")


def plain(text: str) -> str:
    """Return a text without marks and the addresses of links."""
    return " ".join(re.sub(r"[`*[]|\](\([^)]*\))?", "", text).split())


@pytest.mark.parametrize("question", QUESTIONS)
def test_question_has_a_response_within_two_clicks(question: str) -> None:
    address, words = QUESTIONS[question]
    page, _, anchor = address.partition("#")

    assert clicks()[page] <= 2
    assert plain(words) in section(page, anchor)
