"""Where Kafka's versions differ, as measured on each of them."""

import os

import pytest

KAFKA = tuple(
    int(part)
    for part in os.environ.get("SHARECONS_TEST_KAFKA_VERSION", "4.3.0").split(".")
)

HAS_VERSION_2 = KAFKA >= (4, 2)
"""ShareFetch and ShareAcknowledge version 2: renewals, exact record limits. Without
them a fetch brings whole batches, and letting the session go costs no delivery."""

since_4_2 = pytest.mark.skipif(not HAS_VERSION_2, reason="Kafka 4.2 brought it")

LET_GO = 2 if HAS_VERSION_2 else 1
"""The delivery count of a record that a closed session or connection let go."""

PAST_THE_WINDOW = 2029 if HAS_VERSION_2 else 2239
"""The last offset of a full window when batches are of 70 records and each fetch may
bring 500: up to the batch that reaches record 2,000, or all of a last fetch."""
