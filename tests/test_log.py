"""Log lines: with plain `logging`, with structlog, and without configuration."""

import asyncio
import io
import logging
import subprocess
import sys

import pytest
import structlog

from sharecons.log import GuardedLogger, get_logger
from tests.hostile import no_name


@pytest.fixture
def lines():
    """Lines of the standard library's logging, at INFO, with level and message."""
    structlog.reset_defaults()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("sharecons.tests")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lambda: stream.getvalue().splitlines()
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch):
    monkeypatch.setattr(GuardedLogger, "next_report", 0.0)


def test_plain_logging_gets_no_second_timestamp_or_level(lines):
    log = get_logger("sharecons.tests", group="billing")

    log.warning("locks lost", reason="connection lost", records=2)

    assert lines() == [
        "WARNING sharecons.tests: locks lost group=billing reason='connection lost' "
        "records=2"
    ]


def test_level_of_plain_logging_is_respected(lines):
    log = get_logger("sharecons.tests")

    log.debug("hidden")
    log.info("shown")

    assert lines() == ["INFO sharecons.tests: shown"]


def test_external_text_stays_on_one_line_and_is_not_a_format(lines):
    get_logger("sharecons.tests").warning("100 %s", reason="a\nb\x1b[31m%d")

    assert lines() == [r"WARNING sharecons.tests: 100 %s reason='a\nb\x1b[31m%d'"]


def test_exception_is_shown_by_the_handler(lines):
    try:
        raise ValueError("broken")
    except ValueError:
        get_logger("sharecons.tests").exception("failed", topic="orders")

    assert lines()[0] == "ERROR sharecons.tests: failed topic=orders"
    assert lines()[-1] == "ValueError: broken"


@pytest.mark.parametrize("kind", [RuntimeError, asyncio.CancelledError])
def test_filter_that_raises_is_reported_on_stderr_once(lines, capsys, kind):
    log = get_logger("sharecons.tests")

    def fail(record):
        raise kind("disk full")

    logging.getLogger("sharecons.tests").handlers[0].addFilter(fail)
    for _ in range(3):
        log.info("assigned")

    line = f"logging raised {kind.__name__}: disk full; not logged: assigned"
    assert [f"sharecons.tests: {line}"] == capsys.readouterr().err.splitlines()


def test_exception_that_cannot_be_formatted_costs_its_traceback_only(lines):
    def format_exception(record):
        if record.exc_info:
            raise RecursionError
        return True

    logging.getLogger("sharecons.tests").handlers[0].addFilter(format_exception)

    get_logger("sharecons.tests").warning("failed", exc_info=ValueError("bad"))

    (line,) = lines()
    assert "WARNING sharecons.tests: failed traceback_failed=RecursionError" == line


def test_exception_that_handlers_cannot_format_costs_its_traceback_only(
    lines, monkeypatch
):
    monkeypatch.setattr(logging, "raiseExceptions", False)

    get_logger("sharecons.tests").warning("failed", exc_info=no_name())

    (line,) = lines()
    assert "WARNING sharecons.tests: failed traceback_failed=RuntimeError" == line


def test_exit_that_a_handler_of_logging_raises_ends_the_program(lines):
    def exit(record):
        raise SystemExit(3)

    logging.getLogger("sharecons.tests").handlers[0].addFilter(exit)

    with pytest.raises(SystemExit):
        get_logger("sharecons.tests").info("assigned")


def test_configured_structlog_gets_event_dictionaries():
    events = []

    def keep(logger, method, event):
        events.append((method, dict(event)))
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    try:
        get_logger("sharecons.tests", group="billing").info("assigned", partitions=3)
    finally:
        structlog.reset_defaults()

    event = {"event": "assigned", "group": "billing", "partitions": 3}
    assert events == [("info", event)]


def test_record_of_plain_logging_has_event_and_fields_for_formatters(lines):
    records = []
    handler = logging.getLogger("sharecons.tests").handlers[0]
    handler.addFilter(lambda record: records.append(record) or True)

    get_logger("sharecons.tests", group="billing").info("assigned", partitions=3)

    (record,) = records
    assert "assigned" == record.event
    assert {"group": "billing", "partitions": 3} == record.fields


def test_structlog_gets_a_traceback_as_text_without_local_variables(lines):
    """The default renderer of structlog prints local variables if rich is there."""
    structlog.configure()

    def handle(value):
        raise ValueError("broken")

    try:
        handle("pl4nted")
    except ValueError as error:
        get_logger("sharecons.tests").warning("failed", exc_info=error)
        get_logger("sharecons.tests").exception("failed again")
    finally:
        structlog.reset_defaults()

    shown = "\n".join(lines())
    assert 2 == shown.count("ValueError: broken")
    assert 2 == shown.count("in handle")
    assert "value = " not in shown


@pytest.mark.slow("starts a process")
def test_program_without_configuration_shows_warnings_only():
    program = (
        "from sharecons.log import get_logger\n"
        "log = get_logger('sharecons.tests')\n"
        "log.info('hidden')\n"
        "log.warning('shown', broker='b:1')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert (done.stdout, done.stderr) == ("", "shown broker=b:1\n")


class FailingHandler(logging.Handler):
    """Raises for each line, as a handler without its disk or its server does."""

    def emit(self, record):
        raise OSError("no space left on device")


def test_handler_that_raises_costs_its_line_only(lines, capsys):
    logger = logging.getLogger("sharecons.tests")
    handler = FailingHandler()
    logger.addHandler(handler)
    log = get_logger("sharecons.tests")
    try:
        log.warning("first")
        log.warning("second")
    finally:
        logger.removeHandler(handler)

    assert len(lines()) == 2, "other handlers have the lines"
    (printed,) = capsys.readouterr().err.splitlines()
    assert "sharecons.tests" in printed
    assert "OSError: no space left on device" in printed


@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError])
def test_processor_that_raises_costs_its_line_only(capsys, kind):
    def fail(logger, method, event):
        raise kind("no JSON")

    structlog.configure(processors=[fail])
    try:
        get_logger("sharecons.tests").warning("lost")
    finally:
        structlog.reset_defaults()

    (printed,) = capsys.readouterr().err.splitlines()
    assert f"{kind.__name__}: no JSON" in printed


def test_field_whose_text_raises_costs_its_line_only(lines, capsys):
    class Textless:
        def __str__(self):
            raise RuntimeError("no text")

    get_logger("sharecons.tests").warning("lost", reason=Textless())

    assert lines() == []
    assert "RuntimeError: no text" in capsys.readouterr().err
