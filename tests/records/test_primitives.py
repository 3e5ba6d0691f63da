"""Readers of Kafka's integers, compared with `struct`."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.batch_header import int16_at, int32_at, int64_at, uint32_at

FORMATS = {int16_at: ">h", uint32_at: ">I", int32_at: ">i", int64_at: ">q"}


@given(data=st.binary(min_size=8, max_size=16), kind=st.sampled_from(list(FORMATS)))
def test_numbers_match_struct(data, kind):
    for at in range(len(data) - 7):
        (number,) = struct.unpack_from(FORMATS[kind], data, at)
        assert number == kind(data, at)


@pytest.mark.parametrize("kind", FORMATS)
def test_missing_number_raises_index_error(kind):
    with pytest.raises(IndexError):
        kind(bytes(struct.calcsize(FORMATS[kind])), 1)
