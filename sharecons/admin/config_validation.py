"""Validation of share group configs.

Rule 1: the format and bounds of all values are here (KIP-932, "Broker configuration"
and "Group configuration").
Rule 2: the brokers' own bounds are passed in as values; they are not read here.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from sharecons.config.validation import whole_number
from sharecons.errors import ConfigurationError

__all__ = [
    "DEAD_LETTER_CONFIGS",
    "DEAD_LETTER_COPY",
    "DEAD_LETTER_PREFIX",
    "DEAD_LETTER_TOPIC",
    "Bounds",
    "ConfigChanges",
    "bound_names",
    "check_configs",
    "read_bounds",
    "topic_name_problem",
]

ConfigChanges = Mapping[str, str | int | bool | None]
"""New values by name; None resets one to its default."""

INT32_MAX: Final = 0x7FFFFFFF


class Bounds(NamedTuple):
    """Lowest and highest value, both included; `by` names their origin."""

    lowest: int
    highest: int
    by: str


DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
DEAD_LETTER_COPY: Final = "errors.deadletterqueue.copy.record.enable"
DEAD_LETTER_CONFIGS: Final = (DEAD_LETTER_COPY, DEAD_LETTER_TOPIC)
"""The configs of a group's dead letters (KIP-1191, Kafka 4.4)."""
DEAD_LETTER_PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
"""The brokers' config with which the name of a dead-letter topic must begin."""

TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

_NUMBER_BOUNDS: Final[Mapping[str, Bounds]] = {
    name: Bounds(lowest, highest, "Kafka")
    for name, lowest, highest in (
        ("share.assignment.interval.ms", 0, INT32_MAX),
        ("share.delivery.count.limit", 2, 10),
        ("share.heartbeat.interval.ms", 1, INT32_MAX),
        ("share.partition.max.record.locks", 100, 10_000),
        ("share.record.lock.duration.ms", 1_000, 3_600_000),
        ("share.session.timeout.ms", 1, INT32_MAX),
    )
}
"""The widest bounds that brokers can have."""

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "share.isolation.level": ("read_committed", "read_uncommitted"),
    "share.renew.acknowledge.enable": ("true", "false"),
    DEAD_LETTER_COPY: ("true", "false"),
}

RESET: Final = "share.auto.offset.reset"
HEARTBEAT: Final = "share.heartbeat.interval.ms"
SESSION: Final = "share.session.timeout.ms"

_DURATION: Final = re.compile(
    r"by_duration:P(?=\d|T)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?"
)


def bound_names(name: str) -> tuple[str, str]:
    """Return the broker configs that bound a group config: minimum, maximum."""
    bare = name.removeprefix("share.")
    return f"group.share.min.{bare}", f"group.share.max.{bare}"


def read_bounds(brokers: Mapping[str, str | None]) -> dict[str, Bounds]:
    """Return the bounds of each number, from the brokers' configs if known."""
    return {name: _bounds(name, brokers, own) for name, own in _NUMBER_BOUNDS.items()}


def _bounds(name: str, brokers: Mapping[str, str | None], defaults: Bounds) -> Bounds:
    lowest, highest = (whole_number(brokers.get(bound)) for bound in bound_names(name))
    if lowest is None and highest is None:
        return defaults
    by = "the brokers' " + " and ".join(bound_names(name))
    return Bounds(
        defaults.lowest if lowest is None else lowest,
        defaults.highest if highest is None else highest,
        by,
    )


def check_configs(
    changes: ConfigChanges,
    bounds: Mapping[str, Bounds],
    current: Mapping[str, str | None],
    topic_prefix: str = "",
) -> dict[str, str | None]:
    """Validate changes, and return them as text.

    `current` are the group's configs under all names known to the brokers; empty if
    not readable. `topic_prefix` is the brokers' `DEAD_LETTER_PREFIX`.

    Raises:
        ConfigurationError: a change is invalid; the message lists all problems.
    """
    values = {name: _to_text(value) for name, value in changes.items()}
    problems = [
        complaint
        for name, value in values.items()
        if (complaint := _problem(name, value, bounds, current))
    ]
    if not problems and (complaint := _heartbeat_problem(values, current)):
        problems.append(complaint)
    if not problems and (complaint := _prefix_problem(values, topic_prefix)):
        problems.append(complaint)
    if not changes:
        problems.append("no config to set")
    if problems:
        raise ConfigurationError("; ".join(problems))
    return values


def _to_text(value: str | int | bool | None) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value).strip()


def _problem(
    name: str,
    value: str | None,
    bounds: Mapping[str, Bounds],
    current: Mapping[str, str | None],
) -> str | None:
    known = set(current) or {*_NUMBER_BOUNDS, *_CHOICES, RESET, DEAD_LETTER_TOPIC}
    if name not in known and name in DEAD_LETTER_CONFIGS:
        return (
            f"{name} is a config of Kafka 4.4, and these brokers are older; upgrade "
            "them, or let a ShareWorker write dead letters"
        )
    if name not in known:
        return f"there is no group config {name!r}{_suggestion(name, known)}"
    if value is None:
        return None
    if name in bounds:
        return _number_problem(name, value, bounds[name])
    check = _CHECKS.get(name)
    return None if check is None else check(name, value)


def _suggestion(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    # A forgotten prefix is the most frequent mistake.
    if f"share.{name}" in known:
        near = [f"share.{name}"]
    if near:
        return f"; did you mean {near[0]!r}?"
    configs = sorted(
        each
        for each in known
        if each.startswith("share.") or each in DEAD_LETTER_CONFIGS
    )
    return f"; share groups have {', '.join(configs)}"


def _number_problem(name: str, value: str, bounds: Bounds) -> str | None:
    number = whole_number(value)
    if number is None:
        return f"{name} must be a whole number, not {value!r}"
    if not bounds.lowest <= number <= bounds.highest:
        return (
            f"{name} must be from {bounds.lowest} to {bounds.highest} "
            f"(by {bounds.by}), not {number}"
        )
    return None


def _choice_problem(name: str, value: str) -> str | None:
    choices = _CHOICES[name]
    if value.lower() in choices:
        return None
    return f"{name} must be {' or '.join(choices)}, not {value!r}"


def _reset_problem(name: str, value: str) -> str | None:
    if value in ("earliest", "latest") or _DURATION.fullmatch(value):
        return None
    return (
        f"{name} must be earliest, latest or by_duration: with an ISO 8601 duration "
        f"(as in by_duration:PT1H), not {value!r}"
    )


def _topic_problem(name: str, value: str) -> str | None:
    problem = topic_name_problem(value) if value else None
    return None if problem is None else f"{name} {problem}"


def topic_name_problem(topic: str) -> str | None:
    """Return why brokers write no dead letters to a topic of this name, or None."""
    if topic.startswith("__"):
        return f"must not begin with '__', which is for internal topics: {topic!r}"
    if topic in (".", "..") or not TOPIC_NAME.fullmatch(topic):
        return (
            "must be the name of a topic: at most 249 letters, digits, '.', '_' and "
            f"'-', not {topic!r}"
        )
    return None


def _prefix_problem(values: Mapping[str, str | None], prefix: str) -> str | None:
    """Check the prefix, which brokers do not: they would write no dead letters."""
    topic = values.get(DEAD_LETTER_TOPIC)
    if not topic or topic.startswith(prefix):
        return None
    return (
        f"{DEAD_LETTER_TOPIC} must begin with {prefix!r}, the brokers' "
        f"{DEAD_LETTER_PREFIX}, not {topic!r}; otherwise no dead letters are written"
    )


_CHECKS: Final[Mapping[str, Callable[[str, str], str | None]]] = {
    **dict.fromkeys(_CHOICES, _choice_problem),
    RESET: _reset_problem,
    DEAD_LETTER_TOPIC: _topic_problem,
}


def _heartbeat_problem(
    values: Mapping[str, str | None], current: Mapping[str, str | None]
) -> str | None:
    """Check that a member sends a heartbeat before its session expires."""
    if not {HEARTBEAT, SESSION} & values.keys():
        return None
    heartbeat = whole_number(values.get(HEARTBEAT) or current.get(HEARTBEAT))
    session = whole_number(values.get(SESSION) or current.get(SESSION))
    if heartbeat is None or session is None or heartbeat < session:
        return None
    return f"{HEARTBEAT} ({heartbeat}) must be less than {SESSION} ({session})"
