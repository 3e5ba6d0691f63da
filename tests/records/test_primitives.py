"""Kafka's numbers out of bytes, held against `struct`."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.primitives import int16_at, int32_at, int64_at, uint32_at

FORMATS = {int16_at: ">h", uint32_at: ">I", int32_at: ">i", int64_at: ">q"}


@given(data=st.binary(min_size=8, max_size=16), kind=st.sampled_from(list(FORMATS)))
def test_as_struct_reads_them(data, kind):
    for at in range(len(data) - 7):
        (number,) = struct.unpack_from(FORMATS[kind], data, at)
        assert number == kind(data, at)


@pytest.mark.parametrize("kind", FORMATS)
def test_where_there_is_none(kind):
    with pytest.raises(IndexError):
        kind(bytes(struct.calcsize(FORMATS[kind])), 1)
