"""The size of a commit as one batch of Kafka's log."""

import pytest

from sharecons.testing.broker.groups.commit_size import commit_size

MAX_BYTES = 1_048_588  # message.max.bytes


@pytest.mark.parametrize(
    ("group", "metadata", "count"),
    [("g", 4000, 257), ("g", 0, 16_774), ("group-longer-name-0123", 10, 11_124)],
)
def test_largest_commit_is_that_of_kafka(group, metadata, count):
    """The counts are the largest ones that Kafka 4.4.0 has taken, for a topic `t`."""
    offsets = [("t", "x" * metadata)] * (count + 1)

    assert commit_size(group, offsets[1:]) <= MAX_BYTES < commit_size(group, offsets)


def test_size_of_a_commit_is_exact():
    offsets = [("t", "x" * 4000)] * 257

    assert MAX_BYTES == commit_size("g", [*offsets, ("t", "x" * 3821)])
