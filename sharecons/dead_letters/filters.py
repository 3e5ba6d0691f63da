"""Filters of dead letters: `origin-topic=orders`, `reason~timeout`, `since=...`.

A filter is a field, an operator and a text. `=` compares the whole text, `~` looks for
a part of it in any case. A dead letter passes if each field that is named passes; of
several filters for one field, one is enough.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sharecons.dead_letters.models import DeadLetterRecord
from sharecons.errors import ConfigurationError
from sharecons.similar_names import did_you_mean

__all__ = [
    "FIELDS",
    "FieldCondition",
    "LetterFilter",
    "parse_filter",
    "parse_time",
    "split_filters",
]

FIELDS: Final = (
    "origin-topic",
    "origin-partition",
    "group",
    "reason",
    "exception",
    "key",
    "position",
    "since",
    "until",
)
TIMES: Final = ("since", "until")


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """One filter; `time` is the value of since and until, in ms since the epoch."""

    field: str
    operator: str
    text: str
    time: int = 0

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{self.text}"


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Some filters; none accept each dead letter."""

    conditions: tuple[FieldCondition, ...] = ()

    def matches(self, letter: DeadLetterRecord) -> bool:
        """Return whether a dead letter passes."""
        by_field: dict[str, bool] = {}
        for condition in self.conditions:
            passed = by_field.get(condition.field, False)
            by_field[condition.field] = passed or _matches(condition, letter)
        return all(by_field.values())


def parse_filter(*texts: str) -> LetterFilter:
    """Parse filters such as `origin-topic=orders`.

    Raises:
        ConfigurationError: a text is no filter; the message says why.
    """
    conditions = tuple(_parse(text) for text in texts)
    for name in TIMES:
        if sum(each.field == name for each in conditions) > 1:
            raise ConfigurationError(f"the filter {name} can be given only once")
    return LetterFilter(conditions)


def split_filters(text: str) -> list[str]:
    """Return the filters of a line, in which quotes hold one with spaces together.

    Raises:
        ConfigurationError: a quote is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(f"filter {text!r}: {error}") from None


def parse_time(name: str, text: str) -> int:
    """Return milliseconds since the epoch; a time without a zone is UTC.

    Raises:
        ConfigurationError: it is not a time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{name} {text!r} is not a time such as 2026-11-21T10:00:00"
        ) from None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def _parse(text: str) -> FieldCondition:
    at = min((text.find(each) for each in "=~" if each in text), default=-1)
    name, operator, value = text[:at], text[at : at + 1], text[at + 1 :]
    if at < 1 or name not in FIELDS or not value:
        raise ConfigurationError(
            f"filter {text!r} is not FIELD=TEXT or FIELD~TEXT; the fields are "
            f"{', '.join(FIELDS)}{did_you_mean(name, FIELDS)}"
        )
    if name in TIMES:
        if operator != "=":
            raise ConfigurationError(f"filter {text!r}: {name} needs =")
        return FieldCondition(name, operator, value, parse_time(name, value))
    return FieldCondition(name, operator, value)


def _matches(condition: FieldCondition, letter: DeadLetterRecord) -> bool:
    if condition.field == "since":
        return letter.timestamp >= condition.time
    if condition.field == "until":
        return letter.timestamp < condition.time
    text = _TEXTS[condition.field](letter)
    if text is None:
        return False
    if condition.operator == "=":
        return text == condition.text
    return condition.text.casefold() in text.casefold()


def _key(letter: DeadLetterRecord) -> str | None:
    return (
        None if letter.key is None else letter.key.decode("utf-8", "backslashreplace")
    )


def _of_origin(name: str) -> Callable[[DeadLetterRecord], str | None]:
    def text(letter: DeadLetterRecord) -> str | None:
        value = getattr(letter.origin, name, None)
        return None if value is None else str(value)

    return text


_TEXTS: Final[Mapping[str, Callable[[DeadLetterRecord], str | None]]] = {
    "origin-topic": _of_origin("topic"),
    "origin-partition": _of_origin("partition"),
    "group": _of_origin("group"),
    "reason": _of_origin("reason"),
    "exception": _of_origin("exception"),
    "key": _key,
    "position": lambda letter: f"{letter.partition}:{letter.offset}",
}
