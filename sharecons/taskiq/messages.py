"""How a task becomes a record: its key and headers, and when it is due.

The value is taskiq's message. The headers are for people who look at the topic, except
`DUE_HEADER`, by which a worker holds a delayed task until it is due.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from sharecons._record import Headers
from sharecons.errors import ConfigurationError

__all__ = [
    "DELAY_LABEL",
    "DUE_HEADER",
    "KEY_LABEL",
    "delay_left",
    "headers_of",
    "key_of",
]

KEY_LABEL: Final = "sharecons_key"
"""The label whose value is the record's key."""

DELAY_LABEL: Final = "delay"
"""The label of a delay in seconds; taskiq's SmartRetryMiddleware sets it."""

DUE_HEADER: Final = "taskiq-due"
"""The header with the time at which a task can run, in ms since the epoch."""


def key_of(labels: Mapping[str, Any]) -> bytes | None:
    """Return the record's key, or None if the task has no label for it."""
    key = labels.get(KEY_LABEL)
    return None if key is None else str(key).encode()


def headers_of(
    task_id: str,
    task_name: str,
    labels: Mapping[str, Any],
    *,
    max_delay: float,
    now_ms: int,
) -> Headers:
    """Return the headers of a task's record.

    Args:
        max_delay: the longest delay in seconds.
        now_ms: milliseconds since the epoch.

    Raises:
        ConfigurationError: the delay is not a number of seconds from 0 to `max_delay`.
    """
    headers: list[tuple[str, bytes | None]] = [
        ("taskiq-task-id", task_id.encode()),
        ("taskiq-task-name", task_name.encode()),
    ]
    delay = _delay_of(task_name, labels, max_delay)
    if delay > 0:
        headers.append((DUE_HEADER, b"%d" % (now_ms + round(delay * 1000))))
    return tuple(headers)


def _delay_of(task_name: str, labels: Mapping[str, Any], max_delay: float) -> float:
    given = labels.get(DELAY_LABEL, 0.0)
    try:
        delay = float(given)
    except (TypeError, ValueError):
        delay = math.nan
    if not 0 <= delay <= max_delay:
        raise ConfigurationError(
            f"task {task_name!r} was not sent: its label delay={given!r} must be a "
            f"number of seconds from 0 to the broker's max_delay of {max_delay:g}; use "
            "a schedule source of taskiq for longer delays"
        )
    return delay


def delay_left(headers: Headers, *, max_delay: float, now_ms: int) -> float:
    """Return the seconds until a record's task is due; 0.0 if it is.

    An invalid header counts as none, as other producers can write to the topic.
    """
    for name, value in headers:
        if name == DUE_HEADER and value is not None and value.isdigit():
            return min(max(0.0, (int(value[:20]) - now_ms) / 1000), max_delay)
    return 0.0
