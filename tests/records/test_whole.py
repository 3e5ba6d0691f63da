"""One batch acquired as a whole is read without an account, and comes to the same."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sharecons.record import DETACHED
from sharecons.records.batch import _PayloadReader
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.layout import CRC_START
from tests.records.reading import read, sealed, told

FIRST, COUNT = 7, 3


def batch(codec=Codec.NONE, *, control=False):
    return encode(
        [
            NewRecord(b"key", b"value %d" % i, (("a", b"b"),), i, i)
            for i in range(COUNT)
        ],
        base_offset=FIRST,
        base_timestamp=1_000,
        last_offset_delta=COUNT - 1,
        compression=codec,
        control=control,
    )


def outcome(decoded):
    return told(decoded.records), decoded.gaps, decoded.undecodable, decoded.unseen


def both(payload, first=FIRST, last=FIRST + COUNT - 1):
    """See that it comes to the same with an account; gives what it comes to."""
    acquired = [(first, last, 2)]
    found = outcome(read(payload, acquired))
    assert found == outcome(
        _PayloadReader(payload, acquired, "orders", 3, DETACHED).read()
    )
    return found


@pytest.mark.parametrize("codec", Codec)
def test_all_its_records(codec):
    records, gaps, undecodable, unseen = both(batch(codec))

    assert [FIRST, FIRST + 1, FIRST + 2] == [record[0] for record in records]
    assert not gaps + undecodable + unseen


@pytest.mark.parametrize("first", range(FIRST - 2, FIRST + 3))
@pytest.mark.parametrize("last", range(FIRST + 2, FIRST + 5))
@pytest.mark.parametrize("control", [False, True])
def test_more_or_less_than_it(first, last, control):
    both(batch(control=control), first, last)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@example(at=16, bits=1, whole=True)  # another format
@example(at=26, bits=1, whole=True)  # its last offset
@example(at=60, bits=1, whole=True)  # fewer records than offsets
@example(at=60, bits=7, whole=True)  # more of them
@given(
    at=st.integers(0, len(batch()) - 1), bits=st.integers(1, 255), whole=st.booleans()
)
def test_damage_anywhere(codec, at, bits, whole):
    damaged = bytearray(batch(codec))
    at %= len(damaged)
    damaged[at] ^= bits
    # Some of it such that the checksum is right.
    both(sealed(damaged) if whole and at >= CRC_START else bytes(damaged))


@given(size=st.integers(0, len(batch())), more=st.binary(max_size=80))
def test_cut_off_or_with_more_behind_it(size, more):
    both(batch()[:size])
    both(batch() + more)
