"""Bytes of records, as people see them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.dashboard.shown_bytes import FORMS, show_bytes


@pytest.mark.parametrize(
    ("data", "form", "text", "shown_as"),
    [
        (None, "auto", "null", "null"),
        (b"", "auto", "", "text"),
        ("grün".encode(), "auto", "grün", "text"),
        (b"two\nlines", "auto", "two\nlines", "text"),
        (
            b'{"a": [1, "\xc3\xa9"]}',
            "auto",
            '{\n  "a": [\n    1,\n    "é"\n  ]\n}',
            "json",
        ),
        (b'{"a": 1}', "text", '{"a": 1}', "text"),
        (b"{broken", "json", "{broken", "text"),
        (b"12", "auto", "12", "text"),
        (b"\xff\x00A", "auto", "000000  ff 00 41" + " " * 41 + "..A", "hex"),
        (b"\xff\x00A", "text", "000000  ff 00 41" + " " * 41 + "..A", "hex"),
        (b"A", "hex", "000000  41" + " " * 47 + "A", "hex"),
        (b"\x1b[2J\xe2\x80\xae", "auto", "\\x1b[2J\\u202e", "text"),
        (b'{"a": "\\u202e"}', "auto", '{\n  "a": "\\u202e"\n}', "json"),
    ],
)
def test_bytes_are_shown(data, form, text, shown_as):
    shown = show_bytes(data, form)

    assert (text, shown_as) == (shown.text, shown.form)
    assert not shown.is_cut


def test_long_value_is_cut_between_characters():
    shown = show_bytes("é".encode() * 3000, limit=4095)

    assert "é" * 2047 == shown.text
    assert (6000, True) == (shown.size, shown.is_cut)
    assert "é" * 3000 == show_bytes("é".encode() * 3000, limit=None).text


def test_nested_json_is_text():
    assert "text" == show_bytes(b"[" * 100_000, limit=None).form


@given(st.binary(max_size=200), st.sampled_from(FORMS), st.integers(0, 100))
def test_any_bytes_are_shown_without_control_characters(data, form, limit):
    shown = show_bytes(data, form, limit)

    assert all(line.isprintable() for line in shown.text.split("\n"))
    assert len(data) == shown.size
    assert (len(data) > limit) == shown.is_cut
