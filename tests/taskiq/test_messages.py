"""How a task becomes a record."""

import math

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from sharecons.errors import ConfigurationError
from sharecons.taskiq.messages import (
    DUE_HEADER,
    KEY_LABEL,
    delay_left,
    headers_of,
    key_of,
)

NOW = 1_700_000_000_000


def due(value: bytes | None, max_delay: float = 60.0) -> float:
    headers = (("other", b"1"), (DUE_HEADER, value))
    return delay_left(headers, max_delay=max_delay, now_ms=NOW)


@pytest.mark.parametrize(
    ("labels", "key"),
    [({}, None), ({KEY_LABEL: "k\u00e9"}, b"k\xc3\xa9"), ({KEY_LABEL: 7}, b"7")],
)
def test_key_is_the_label(labels, key) -> None:
    assert key_of(labels) == key


@pytest.mark.parametrize("delay", [1.5, "1.5"])
def test_delay_becomes_the_time_at_which_the_task_is_due(delay) -> None:
    headers = headers_of("id", "name", {"delay": delay}, max_delay=60, now_ms=NOW)

    assert headers[-1] == (DUE_HEADER, b"%d" % (NOW + 1500))
    assert delay_left(headers, max_delay=60, now_ms=NOW) == 1.5
    assert delay_left(headers, max_delay=60, now_ms=NOW + 1000) == 0.5
    assert delay_left(headers, max_delay=60, now_ms=NOW + 9000) == 0.0


@pytest.mark.parametrize("labels", [{}, {"delay": 0}, {"delay": "0.0"}])
def test_task_without_delay_has_no_due_header(labels) -> None:
    headers = headers_of("id", "name", labels, max_delay=60, now_ms=NOW)

    assert [name for name, _ in headers] == ["taskiq-task-id", "taskiq-task-name"]


@pytest.mark.parametrize("delay", [-0.1, 60.1, math.inf, math.nan, "x", None])
def test_invalid_delay_is_rejected(delay) -> None:
    with pytest.raises(ConfigurationError, match="max_delay of 60"):
        headers_of("id", "name", {"delay": delay}, max_delay=60, now_ms=NOW)


@pytest.mark.parametrize(
    "value", [None, b"", b"soon", b"-5", b"1.5", "\u0661".encode(), b"\xff"]
)
def test_invalid_due_header_counts_as_none(value) -> None:
    assert due(value) == 0.0


@pytest.mark.parametrize("value", [b"9" * 20, b"9" * 100_000, b"%d" % (NOW + 61_000)])
def test_due_time_far_in_the_future_is_limited(value) -> None:
    assert due(value) == 60.0
