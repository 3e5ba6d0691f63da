"""The headers of dead letters, of workers and of brokers."""

from typing import Any, cast

import hypothesis.strategies as st
import pytest
from hypothesis import given

from sharecons.copies.dead_letter_headers import (
    Origin,
    RedriveMark,
    origin_headers,
    read_origin,
    read_redrive_mark,
    read_redrives,
    redrive_headers,
    with_first_origin,
    without_origin,
)
from sharecons.copies.dead_letter_queue import DeadLetterQueue
from sharecons.copies.dead_letter_writer import write_dead_letter
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.testing import make_record
from sharecons.worker.origins import origin_of_record

ORIGIN = Origin(
    topic="orders",
    partition=3,
    offset=42,
    group="billing",
    delivery_count=2,
    reason="failed after 5 attempts: TimeoutError: slow",
    timestamp=1_700_000_000_123,
    attempts=5,
    exception="builtins.TimeoutError",
    redrives=1,
)
BROKER = (
    ("__dlq.errors.topic", b"orders"),
    ("__dlq.errors.partition", b"3"),
    ("__dlq.errors.offset", b"42"),
    ("__dlq.errors.group", b"billing"),
    ("__dlq.errors.delivery.count", b"5"),
    ("__dlq.errors.message", b"Offset delivery count exceeded the threshold."),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
NUMBERS = st.integers(0, (1 << 63) - 1)


def test_headers_are_readable() -> None:
    assert (
        ("sharecons.origin.topic", b"orders"),
        ("sharecons.origin.partition", b"3"),
        ("sharecons.origin.offset", b"42"),
        ("sharecons.origin.group", b"billing"),
        ("sharecons.origin.delivery-count", b"2"),
        ("sharecons.reason", b"failed after 5 attempts: TimeoutError: slow"),
        ("sharecons.origin.timestamp", b"1700000000123"),
        ("sharecons.attempts", b"5"),
        ("sharecons.exception", b"builtins.TimeoutError"),
        ("sharecons.redrives", b"1"),
        ("sharecons.dead-lettered", b"1"),
    ) == origin_headers(ORIGIN)


@given(
    st.builds(
        Origin,
        topic=TEXTS,
        partition=NUMBERS,
        offset=NUMBERS,
        group=TEXTS,
        delivery_count=NUMBERS,
        reason=TEXTS,
        timestamp=st.none() | NUMBERS,
        attempts=st.none() | NUMBERS,
        exception=st.none() | TEXTS,
        redrives=NUMBERS,
        traceback=st.none() | TEXTS,
        dead_lettered=NUMBERS,
        first_failed=st.none() | NUMBERS,
    )
)
def test_origin_is_read_as_it_was_written(origin: Origin) -> None:
    assert origin == read_origin((("own", b"1"), *origin_headers(origin)))


def test_headers_of_a_broker_are_read() -> None:
    reason = "Offset delivery count exceeded the threshold."

    assert Origin("orders", 3, 42, "billing", 5, reason) == read_origin(BROKER)


def test_headers_of_a_worker_count_before_those_of_a_broker() -> None:
    """The broker's are of an earlier failure, whose copy a worker has read."""
    assert ORIGIN == read_origin((*BROKER, *origin_headers(ORIGIN)))


def test_long_reason_is_shortened_and_lone_surrogates_are_escaped() -> None:
    origin = ORIGIN._replace(reason="x" * 5000, topic="a\udc80")

    read = read_origin(origin_headers(origin))

    assert read is not None
    assert 2000 == len(read.reason)
    assert read.reason.endswith("...")
    assert "a\\udc80" == read.topic


@pytest.mark.parametrize("value", [b"", b"x", b"-1", b"1.5", b"9" * 20, b"\xb2", None])
def test_damaged_headers_are_no_origin(value: bytes | None) -> None:
    headers = dict(origin_headers(ORIGIN)) | {"sharecons.origin.offset": value}

    assert read_origin(tuple(headers.items())) is None


@given(st.lists(st.tuples(st.sampled_from([n for n, _ in BROKER]), st.binary())))
def test_any_bytes_are_read_without_an_error(headers) -> None:
    read_origin(tuple(headers))


def test_record_without_headers_has_no_origin() -> None:
    assert read_origin(()) is None
    assert read_origin((("trace", b"1"),)) is None


def test_headers_of_the_source_are_kept_except_forged_ones() -> None:
    headers = (("trace", b"1"), *BROKER, *origin_headers(ORIGIN), ("trace", None))

    assert (("trace", b"1"), ("trace", None)) == without_origin(headers)


MARK = RedriveMark("again", "orders.dead", 1, 17)


def test_headers_of_a_redriven_record_are_readable() -> None:
    headers = redrive_headers(MARK, 2, ORIGIN, 7)

    assert (
        ("sharecons.redrives", b"2"),
        ("sharecons.redrive.name", b"again"),
        ("sharecons.redrive.of", b"orders.dead:1:17"),
        ("sharecons.first-origin", b"orders:3:42"),
        ("sharecons.first-failed", b"7"),
    ) == headers
    assert MARK == read_redrive_mark((("trace", b"1"), *headers))
    assert 2 == read_redrives(headers)


@given(name=TEXTS, partition=NUMBERS, offset=NUMBERS, redrives=NUMBERS)
def test_redrive_headers_are_read_as_written(
    name: str, partition: int, offset: int, redrives: int
) -> None:
    mark = RedriveMark(name, "orders.dead", partition, offset)
    headers = redrive_headers(mark, redrives, ORIGIN, 7)

    assert (mark, redrives) == (read_redrive_mark(headers), read_redrives(headers))


def test_headers_of_a_redriven_record_are_not_kept_in_its_dead_letter() -> None:
    assert (("trace", b"1"),) == without_origin(
        (("trace", b"1"), *redrive_headers(MARK, 2, ORIGIN, 7))
    )


@pytest.mark.parametrize(
    "value", [b"", b"orders", b"orders:1", b"orders:1:x", b"orders:1:2:3", None]
)
def test_damaged_mark_is_none(value: bytes | None) -> None:
    headers = dict(redrive_headers(MARK, 2, ORIGIN, 7)) | {
        "sharecons.redrive.of": value
    }

    assert read_redrive_mark(tuple(headers.items())) is None


@pytest.mark.parametrize("value", [b"", b"-1", b"many", b"9" * 30, None])
def test_damaged_number_of_redrives_is_zero(value: bytes | None) -> None:
    assert 0 == read_redrives((("sharecons.redrives", value),))
    assert 0 == read_redrives(())


@pytest.mark.parametrize(
    "first",
    [None, b"", b"orders", b"orders:1", b"orders:1:x", b"a b:0:1", b"\n:0:1"],
)
def test_first_origin_that_is_no_position_is_ignored(first: bytes | None) -> None:
    headers = dict(redrive_headers(MARK, 2, ORIGIN, 7))
    headers["sharecons.first-origin"] = first

    assert ORIGIN is with_first_origin(ORIGIN, tuple(headers.items()))


def test_first_origin_of_a_record_that_was_not_redriven_is_ignored() -> None:
    headers = dict(redrive_headers(MARK, 2, ORIGIN, 7))
    del headers["sharecons.redrives"]

    assert ORIGIN is with_first_origin(ORIGIN, tuple(headers.items()))


def test_redriven_dead_letter_of_a_dead_letter_names_the_first_origin() -> None:
    later = ORIGIN._replace(topic="orders.dead", earlier="orders:0:17,retired:1:5")

    again = with_first_origin(ORIGIN, redrive_headers(MARK, 1, later, 7))

    assert ("orders:0:17", None) == (again.first_origin, again.first_failed)


@pytest.mark.anyio
async def test_dead_letter_of_a_redriven_record_keeps_count_and_first_origin() -> None:
    """Other headers of a source topic, which any client can write, are not trusted."""
    sent: list[Any] = []

    class Producer:
        async def send(self, topic: str, value: bytes | None, **options: Any) -> None:
            sent.append(options["headers"])

    forged = origin_headers(ORIGIN._replace(topic="forged", redrives=7))
    marks = redrive_headers(MARK, 2, ORIGIN, 7)
    headers = [("trace", b"1"), *forged, *marks]
    record = make_record(b"v", topic="orders", offset=5, headers=headers)
    await write_dead_letter(
        cast("IdempotentProducer", Producer()),
        DeadLetterQueue("orders.dead"),
        record,
        origin_of_record(record, "billing"),
    )

    origin = read_origin(sent[0])
    assert origin is not None
    assert ("orders", 5, 2) == (origin.topic, origin.offset, origin.redrives)
    assert ("orders:3:42", 7) == (origin.first_origin, origin.first_failed)
    assert ("trace", b"1") == sent[0][0]
    assert 1 == sum(name == "sharecons.redrives" for name, _ in sent[0])
    assert read_redrive_mark(sent[0]) is None
