"""Entries of a ledger are decoded as they were encoded."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.partitions import SharePartition
from sharecons.spark import entries
from sharecons.spark.entries import Identity
from sharecons.spark.errors import LedgerError, LedgerLostError
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.loads import Load, Loads
from tests.protocol.hypothesis_profile import EXAMPLES

IDENTITY = Identity(ledger_id="l", group_id='the "billing" group', member_id="m")

topic_ids = st.binary(min_size=16, max_size=16)
int64s = st.integers(0, 2**63 - 1)
loads = st.dictionaries(
    st.text(max_size=5),
    st.builds(
        Load,
        start=int64s,
        ledger_end=int64s,
        spans=st.lists(st.tuples(int64s, int64s), max_size=3).map(tuple),
        open_since=st.none() | int64s,
        is_complete=st.booleans(),
    ),
    max_size=3,
)
parts = st.builds(
    AcquiredRange,
    st.text(min_size=1, max_size=10),
    topic_ids,
    st.integers(0, 2**31 - 1),
    int64s,
    int64s,
    st.integers(1, 2**15 - 1),
)


@EXAMPLES
@given(st.lists(parts, max_size=5, unique_by=lambda part: part.topic), int64s)
def test_acquired_entry_is_decoded_as_encoded(segment, at):
    entry = entries.parse_entry(entries.encode_acquired("d", at, segment), "here")

    assert "acquired" == entry.kind
    assert at == entry.header["position"]
    assert segment == list(entry.segment)
    assert {part.topic: part.topic_id for part in segment} == entry.topics


def test_recreated_topic_in_a_segment_keeps_both_ids():
    segment = [AcquiredRange("a", bytes([i]) * 16, 0, 0, 9, 1) for i in (1, 2, 1)]
    entry = entries.parse_entry(entries.encode_acquired("d", 0, segment), "here")

    assert segment == list(entry.segment)


@EXAMPLES
@given(
    st.dictionaries(
        st.builds(SharePartition, topic_ids, st.integers(0, 9)),
        st.lists(st.tuples(int64s, int64s), min_size=1, max_size=3),
        max_size=4,
    ),
    st.dictionaries(st.text(max_size=5), topic_ids, max_size=3),
    loads,
)
def test_trimmed_entry_is_decoded_as_encoded(remembered, topics, known):
    data = entries.encode_trimmed(
        "d",
        IDENTITY,
        begin=7,
        first_kept=3,
        topics=topics,
        redeliverable=remembered,
        loads=Loads(known),
    )
    entry = entries.parse_entry(data, "here")

    assert IDENTITY == entry.identity
    assert (7, 3) == (entry.header["begin"], entry.header["first_kept"])
    assert topics == entry.topics
    assert remembered == entry.redeliverable
    assert known == dict(entry.loads.items())


def test_truncated_entry_is_damaged():
    data = entries.encode_acquired("d", 0, [AcquiredRange("a", bytes(16), 0, 0, 9, 1)])
    for length in range(len(data)):
        with pytest.raises(LedgerLostError, match="entry here is damaged"):
            entries.parse_entry(data[:length], "here")


def test_entry_with_any_byte_changed_is_damaged():
    data = entries.encode_opened("d", IDENTITY)
    for index in range(len(data)):
        changed = data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]
        with pytest.raises(LedgerLostError):
            entries.parse_entry(changed, "here")


def test_entry_of_a_newer_version_is_rejected():
    body, _, _ = entries.encode_opened("d", IDENTITY).rpartition(b'{"crc32":')
    body = body.replace(b'"version":1', b'"version":3')
    data = body + b'{"crc32":%d}\n' % zlib.crc32(body)

    with pytest.raises(LedgerError, match="has version 3, and .* reads 1 to 2"):
        entries.parse_entry(data, "here")


def version(data):
    return json.loads(data.splitlines()[0])["version"]


def test_only_entries_with_loads_have_version_2():
    nothing = {"begin": 0, "first_kept": 0, "topics": {}, "redeliverable": {}}
    known = Loads({"one": Load(start=0, ledger_end=0)})

    assert 1 == version(entries.encode_opened("d", IDENTITY))
    assert 1 == version(entries.encode_acquired("d", 0, []))
    assert 1 == version(entries.encode_trimmed("d", IDENTITY, loads=Loads(), **nothing))
    assert 2 == version(entries.encode_trimmed("d", IDENTITY, loads=known, **nothing))
    assert 2 == version(
        entries.encode_load("d", "one", position=0, start=0, is_complete=False)
    )


def test_range_takes_less_than_30_bytes():
    segment = [
        AcquiredRange("orders", bytes(16), i % 6, i * 100, i * 100 + 99, 1)
        for i in range(100_000)
    ]

    assert len(entries.encode_acquired("d", 0, segment)) < 30 * len(segment)
