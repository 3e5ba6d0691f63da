"""The pages of log lines list every event of the source; recipes of logging.md work."""

import contextlib
import io
import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest
import structlog

from sharecons.cli.run.logs import configure_logs
from sharecons.log import get_logger
from tests.guides import Guide
from tests.logged_events import ROOT, Event, logged_events

Key = tuple[str, str, str]


@pytest.fixture(scope="module")
def page() -> Guide:
    return Guide("logging.md")


@pytest.fixture(scope="module")
def rows() -> dict[Key, tuple[str, str]]:
    """Return fields and meaning by logger, level and text."""
    found: dict[Key, tuple[str, str]] = {}
    logger = ""
    lines = Guide("log-lines-worker.md", "log-lines-clients.md").text.splitlines()
    for line in lines:
        if match := re.fullmatch(r"### `([\w.]+)`", line):
            logger = match[1]
        elif re.match(r"\| (DEBUG|INFO|WARNING|ERROR) \|", line):
            level, text, fields, meaning = line[2:-2].split(" | ")
            key = logger, level, text
            assert key not in found, f"twice: {key}"
            found[key] = fields, meaning
    return found


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return logged_events()


def key_of(event: Event) -> Key:
    return event.logger, event.level, event.text


def test_each_logging_call_of_the_source_has_a_row(
    rows: dict[Key, tuple[str, str]], events: list[Event]
) -> None:
    assert len(events) > 100
    missing = [
        f"{event.where}: {event}" for event in events if key_of(event) not in rows
    ]

    assert [] == missing


def test_each_row_has_a_logging_call(
    rows: dict[Key, tuple[str, str]], events: list[Event]
) -> None:
    assert [] == sorted(rows.keys() - {key_of(event) for event in events})


def test_fields_of_a_call_are_in_its_row(
    rows: dict[Key, tuple[str, str]], events: list[Event]
) -> None:
    known: dict[Key, set[str]] = defaultdict(set)
    open_keys = {key_of(event) for event in events if event.is_open}
    for event in events:
        known[key_of(event)] |= event.fields
    for key, names in known.items():
        listed = {each for each in re.split(r", (?:and )?", rows[key][0]) if each}
        assert names <= listed, key
        assert key in open_keys or listed <= names, key


def test_events_of_members_and_workers_have_a_group(events: list[Event]) -> None:
    """In the call, or bound to the logger of the module."""
    without = [
        event.where
        for event in events
        if event.logger.startswith(("sharecons.member.", "sharecons.worker."))
        and event.logger != "sharecons.member.lifecycle"  # has a traceback
        and "group" not in event.fields
        and "get_logger(__name__)" in _source(event.logger)
    ]

    assert [] == without


def _source(module: str) -> str:
    return (ROOT / module.replace(".", "/")).with_suffix(".py").read_text()


def test_each_row_says_what_an_event_means(rows: dict[Key, tuple[str, str]]) -> None:
    assert [] == [key for key, (_, meaning) in rows.items() if len(meaning) < 9]


@contextmanager
def unconfigured() -> Iterator[None]:
    """Remove the handlers of pytest, which it adds before each test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()


def configure_run(stream: io.StringIO) -> None:
    """Configure logging as `sharecons run` does."""
    with contextlib.redirect_stderr(stream):
        configure_logs(None, "info")


@pytest.mark.parametrize(
    "recipe", ["configure_json_logs", "configure_structlog", "sharecons run"]
)
def test_recipe_writes_one_json_object_per_line_with_the_fields(
    page: Guide, recipe: str
) -> None:
    stream = io.StringIO()
    log = get_logger("sharecons.tests", group="billing")

    with unconfigured():
        if recipe == "sharecons run":
            configure_run(stream)
        else:
            page.program(recipe)(stream)
        log.info("assigned", partitions=3)
        log.debug("not shown")
        try:
            raise ValueError("no such customer")
        except ValueError as error:
            log.warning("attempt failed", topic="orders", exc_info=error)

    assigned, failed = map(json.loads, stream.getvalue().splitlines())
    assert ("assigned", "billing", 3) == (
        assigned["event"],
        assigned["group"],
        assigned["partitions"],
    )
    assert "info" == assigned["level"]
    keys = {"timestamp", "level", "logger", "event"}
    assert keys | {"group", "partitions"} == assigned.keys()
    assert keys | {"group", "topic", "exception"} == failed.keys()
    assert datetime.fromisoformat(assigned["timestamp"]).tzinfo is not None
    assert "sharecons.tests" == assigned["logger"]
    assert "orders" == failed["topic"]
    assert failed["exception"].endswith("ValueError: no such customer")


def test_basic_config_shows_readable_lines_with_fields() -> None:
    stream = io.StringIO()
    with unconfigured():
        logging.basicConfig(stream=stream, level="INFO")
        get_logger("sharecons.tests", group="billing").info("assigned", partitions=3)

    line = "INFO:sharecons.tests:assigned group=billing partitions=3\n"
    assert line == stream.getvalue()
