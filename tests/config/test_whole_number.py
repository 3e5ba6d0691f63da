"""Whole numbers in texts."""

import pytest

from sharecons.config.validation import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("05", 5), ("-1", -1), ("+7", 7), (str(1 << 63), 1 << 63)],
)
def test_digits_are_a_number(text, number):
    assert number == whole_number(text)


@pytest.mark.parametrize(
    "text", [None, "", "-", "1.0", " 1", "1\n", "²", "٣", "1_0", "0x1", "9" * 5000]
)
def test_other_texts_are_no_number(text):
    assert whole_number(text) is None
