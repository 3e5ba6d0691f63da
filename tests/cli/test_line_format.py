"""Lines of standard input to records; test_console_same_as_java.py has more."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.cli.produce.failures import FailedLines
from sharecons.cli.produce.json_lines import parse_json_line
from sharecons.cli.produce.line_format import LineFormat
from sharecons.cli.produce.line_splitter import LineSplitter
from sharecons.cli.produce.new_line import LineError
from sharecons.errors import BrokerError, ConfigurationError, RequestTimedOutError


def split(parts):
    splitter = LineSplitter()
    lines = [line for part in parts for line in splitter.feed(part)]
    return [*lines, *splitter.finish()]


@given(st.lists(st.text("ab\r\n", max_size=6).map(str.encode)))
def test_lines_do_not_depend_on_the_chunks(parts):
    whole = b"".join(parts)
    reference = io.TextIOWrapper(io.BytesIO(whole), "ascii", newline=None)

    assert [line.rstrip("\n").encode() for line in reference] == split(parts)


def test_line_that_is_too_long_is_an_error():
    splitter = LineSplitter(max_line=10)

    assert [b"0123456789"] == list(splitter.feed(b"0123456789\n01234"))
    assert [] == list(splitter.feed(b"56789"))
    with pytest.raises(LineError, match="longer than 10 bytes"):
        list(splitter.feed(b"0"))


def test_bytes_that_are_not_utf_8_are_kept():
    line = LineFormat(has_key=True, has_headers=True).parse(b"h:\xff\t\xfe\t\xfd")

    assert ((("h", b"\xff"),), b"\xfe", b"\xfd") == (line.headers, line.key, line.value)


def test_header_name_that_is_not_utf_8_is_an_error():
    with pytest.raises(LineError, match="not valid UTF-8"):
        LineFormat(has_headers=True).parse(b"\xff:1\tv")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"parse.key": "yes"}, "parse.key must be true or false, not 'yes'"),
        ({"key.separator": ""}, "key.separator must not be empty"),
        ({"headers.separator": ""}, "headers.separator must not be empty"),
        ({"headers.separator": ":"}, "must not be equal"),
        ({"null.marker": "\t"}, "null.marker and key.separator must not be equal"),
    ],
)
def test_invalid_property_is_named(properties, message):
    with pytest.raises(ConfigurationError, match=message):
        LineFormat.from_properties(properties)


def test_json_line_has_all_fields():
    line = parse_json_line(
        b'{"key": "k\\u00e9", "value": {"hex": "00ff"}, "timestamp": 12, "topic": "t",'
        b' "headers": {"a": "1", "b": null}}'
    )

    assert ("k\u00e9".encode(), b"\x00\xff", 12) == (
        line.key,
        line.value,
        line.timestamp,
    )
    assert (("a", b"1"), ("b", None)) == line.headers


def test_json_headers_in_a_list_can_have_equal_names():
    headers = [{"name": "a", "value": value} for value in ("1", None, {"hex": "ff"})]
    line = parse_json_line(json.dumps({"value": None, "headers": headers}).encode())

    assert (None, None, None) == (line.key, line.value, line.timestamp)
    assert (("a", b"1"), ("a", None), ("a", b"\xff")) == line.headers


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"key": "k"}', "no field 'value'"),
        (b'{"values": "v"}', "unknown field 'values'"),
        (b'{"value": 1}', "value must be a string, null or"),
        (b'{"value": {"hex": "0"}}', "'0' is not hexadecimal"),
        (b'{"value": {"hex": "00", "more": 1}}', "value must be"),
        (b'{"value": "\\ud800"}', "value has a lone surrogate"),
        (b'{"value": "", "key": []}', "key must be"),
        (b'{"value": "", "headers": "a"}', "headers must be an object or a list"),
        (b'{"value": "", "headers": [{"name": "a"}]}', "a header in a list must be"),
        (b'{"value": "", "headers": {"\\ud800": ""}}', "a header's name has a lone"),
        (b'{"value": "", "headers": {"a": 1}}', "header 'a' must be"),
        (b'{"value": "", "timestamp": -1}', "timestamp must be"),
        (b'{"value": "", "timestamp": true}', "timestamp must be"),
    ],
)
def test_invalid_json_line_is_an_error(line, message):
    with pytest.raises(LineError, match=message):
        parse_json_line(line)


@given(st.permutations(range(1, 9)), st.integers(0, 8))
def test_failed_lines_are_shown_as_ranges(order, count):
    failed = FailedLines(lambda line: None)
    for line in order[:count]:
        failed.add(line, BrokerError("no", code=1, name="X"))
    summary = failed.summary(9)

    if not count:
        assert summary is None
        return
    start, _, ranges = summary.partition(": ")
    found = set()
    for each in ranges.split(", "):
        first, _, last = each.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert f"{count} of 9 lines failed" == start
    assert set(order[:count]) == found
    numbers = sorted(found)
    gaps = sum(b > a + 1 for a, b in zip(numbers, numbers[1:], strict=False))
    assert gaps == ranges.count(", ")


def test_many_failed_lines_are_summarized():
    shown = []
    failed = FailedLines(shown.append)
    for line in range(2, 2_000, 2):
        failed.add(line, RequestTimedOutError("late"))

    assert ["line 2: late", "line 4: late"] == shown[:2]
    assert 10 == len(shown)
    assert failed.summary(2_000).endswith(", 38, 40, and 979 more ranges")
    assert 3 == failed.exit_code
