"""Filters of dead letters."""

from typing import Any

import pytest

from sharecons.dead_letters import (
    DeadLetterRecord,
    LetterFilter,
    SourceStatus,
    parse_filter,
)
from sharecons.dead_letters.filters import split_filters
from sharecons.errors import ConfigurationError
from sharecons.testing import make_record
from tests.dead_letters.letters import origin_of

NOON = 1_763_719_200_000  # 2025-11-21T10:00:00Z


def letter(*, key: bytes | None = b"k", timestamp: int = NOON, **fields: Any) -> Any:
    return DeadLetterRecord(
        record=make_record(b"v", key=key, topic="dead", offset=1, timestamp=timestamp),
        origin=origin_of(4, **fields),
        key=key,
        value=b"v",
        headers=(),
        redrives=0,
        status=SourceStatus.COPIED,
    )


@pytest.mark.parametrize(
    "text",
    [
        "origin-topic=orders",
        "origin-topic~ORD",
        "origin-partition=0",
        "group=billing",
        "reason~valueerror",
        "reason=failed: ValueError: 4",
        "exception=builtins.ValueError",
        "exception~Value",
        "key=k",
        "key~K",
        "position=0:1",
        "since=2025-11-21T10:00:00",
        "since=2025-11-21T11:00:00+01:00",
        "since=2025-11-21",
        "until=2025-11-21T10:00:00.001",
    ],
)
def test_filter_passes(text: str) -> None:
    assert parse_filter(text).matches(letter())


@pytest.mark.parametrize(
    "text",
    [
        "origin-topic=order",
        "origin-topic~x",
        "origin-partition=1",
        "group=Billing",
        "reason=ValueError",
        "exception=ValueError",
        "key=x",
        "position=0:5",
        "position=1:1",
        "since=2025-11-21T10:00:00.001",
        "until=2025-11-21T10:00:00",
    ],
)
def test_filter_does_not_pass(text: str) -> None:
    assert not parse_filter(text).matches(letter())


def test_letter_passes_if_one_filter_of_each_field_matches() -> None:
    either = parse_filter("group=billing", "group=other", "origin-topic=orders")

    assert either.matches(letter())
    assert either.matches(letter(group="other"))
    assert not either.matches(letter(group="third"))
    assert not either.matches(letter(topic="payments"))
    assert LetterFilter().matches(letter())


def test_missing_values_do_not_pass() -> None:
    assert not parse_filter("key=k").matches(letter(key=None))
    assert not parse_filter("key~k").matches(letter(key=None))
    assert not parse_filter("exception~E").matches(letter(exception=None))


def test_value_may_contain_operators() -> None:
    assert parse_filter("reason=a=b~c").matches(letter(reason="a=b~c"))
    assert parse_filter("reason~=b~").matches(letter(reason="a=b~c"))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["colour=red"], "filter 'colour=red' is not FIELD=TEXT"),
        (["group"], "the fields are origin-topic, "),
        (["=x"], "is not FIELD=TEXT"),
        (["group="], "is not FIELD=TEXT"),
        (["since=noon"], "since 'noon' is not a time such as"),
        (["since~2025-11-21"], "since needs ="),
        (["since=2025-11-21", "since=2025-11-22"], "since can be given only once"),
    ],
)
def test_invalid_filter_is_rejected(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_filter(*texts)


def test_line_of_filters_is_split_as_a_shell_does() -> None:
    line = "reason~'connection reset' key=k"

    assert ["reason~connection reset", "key=k"] == split_filters(line)
    with pytest.raises(ConfigurationError, match="No closing quotation"):
        split_filters("reason~'connection")
