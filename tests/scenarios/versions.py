"""Differences between Kafka versions, as measured on each of them."""

import os

import pytest

KAFKA = tuple(
    int(part)
    for part in os.environ.get("SHARECONS_TEST_KAFKA_VERSION", "4.3.0").split(".")
)

HAS_VERSION_2 = KAFKA >= (4, 2)
"""ShareFetch and ShareAcknowledge version 2: renewals, exact record limits. Without
it, a fetch returns whole batches, and closing the session uses no delivery."""

since_4_2 = pytest.mark.skipif(not HAS_VERSION_2, reason="requires Kafka 4.2")
"""Kafka 4.2 brought more: AlterShareGroupOffsets, which Kafka 4.1 ignores,
assignments of one partition to members with different topics, and the options of
Kafka's tools (KIP-1147)."""

since_4_3 = pytest.mark.skipif(KAFKA < (4, 3), reason="requires Kafka 4.3")

COUNT_AFTER_CLOSE = 2 if HAS_VERSION_2 else 1
"""The delivery count of a record after its session or connection was closed."""

LAST_OFFSET_OF_WINDOW = 2029 if HAS_VERSION_2 else 2239
"""The last offset of a full window with batches of 70 records and fetches of up to 500
records: up to the batch that reaches record 2,000, or the whole last fetch."""
