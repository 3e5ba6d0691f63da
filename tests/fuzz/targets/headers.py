"""Headers that any producer can write, and the metadata of committed offsets."""

import contextlib
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from sharecons import TopicPartition
from sharecons.copies import dead_letter_headers as dead
from sharecons.dead_letters.progress import (
    MarksFullError,
    check_size,
    decode_metadata,
    encode_metadata,
)
from sharecons.worker.origins import origin_of_record
from sharecons.worker.retry_topics import read_retry_state
from tests.fuzz.drawing import changed, number_texts, short_texts, texts
from tests.fuzz.target import Case, Target

__all__ = ["TARGETS"]

NAMES: Final = (
    *(f"sharecons.origin.{name}" for name in ("topic", "partition", "offset", "group")),
    "sharecons.origin.delivery-count",
    "sharecons.origin.timestamp",
    "sharecons.reason",
    "sharecons.attempts",
    "sharecons.redrives",
    "sharecons.redrive.name",
    "sharecons.redrive.of",
    "sharecons.dead-letter-topic",
    "sharecons.dead-lettered",
    "sharecons.earlier-origins",
    "sharecons.first-origin",
    "sharecons.first-failed",
    "sharecons.retry.due",
    *(f"__dlq.errors.{name}" for name in ("topic", "partition", "offset", "group")),
    "__dlq.errors.delivery.count",
    "__dlq.errors.message",
    "traceparent",
    "tracestate",
    "baggage",
    "taskiq-due",
)
VALUES: Final = (
    "orders:0:17",
    "orders.dead:1:2,orders:0:17",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "a=b,c=d;p",
    "1764201600000",
    "5",
)


def _headers() -> SearchStrategy[list[Any]]:
    """Return the headers of a dead letter with changes, or any."""
    origin = dead.Origin(
        topic="orders", partition=0, offset=17, group="billing", delivery_count=5,
        reason="failed", redrives=1, written_to="orders.dead", timestamp=1,
    )  # fmt: skip
    mark = dead.RedriveMark("again", "orders.dead", 0, 3)
    whole = [
        *dead.origin_headers(origin),
        *dead.redrive_headers(mark, 1, origin, 5),
        ("sharecons.retry.due", b"1764201600000"),
    ]
    values = (
        st.none()
        | changed(st.sampled_from(VALUES).map(str.encode))
        | number_texts().map(str.encode)
        | short_texts().map(str.encode)
    )
    some = st.lists(st.tuples(st.sampled_from(NAMES), values).map(list), max_size=4)
    return st.builds(
        lambda kept, more: [list(pair) for pair in whole[:kept]] + more,
        st.integers(0, len(whole)),
        some,
    )


def _check_headers(case: Case) -> None:
    headers = tuple((name, value) for name, value in case)
    record = SimpleNamespace(
        topic="orders.dead", partition=0, offset=3, headers=headers, timestamp=9,
        delivery_count=2,
    )  # fmt: skip
    for origin in (
        dead.read_origin(headers),
        dead.read_retry_origin(headers),
        dead.read_letter(record),
        origin_of_record(record, "billing"),
    ):
        if origin is not None:
            dead.origin_headers(dead.with_first_origin(origin, headers))
            dead.earlier_topics(origin)
            dead.chain_of(origin)
            dead.reference_headers(origin)
    dead.read_redrives(headers)
    dead.read_redrive_mark(headers)
    dead.needs_source(headers)
    read_retry_state(headers)
    _check_extras(headers)


def _check_extras(headers: Any) -> None:
    if find_spec("taskiq"):
        from sharecons.taskiq.messages import delay_left

        assert 0 <= delay_left(headers, max_delay=60.0, now_ms=1764201600000) <= 60.0
    if find_spec("opentelemetry"):
        from sharecons.otel.failures import Failures
        from sharecons.otel.propagation import Propagation

        Propagation(None, Failures()).extract(headers)


METADATA: Final = (
    '{"v":2,"plan":"p","run":"r","marks":"Ag","batch":{"letters":"Ag","producer":[1,0],'
    '"targets":{"orders":{"0":[5,1]}}}}'
)


def _metadata() -> SearchStrategy[str]:
    parts = ('{"v":2,"plan":"p","run":"r"', '"marks":', '"Ag"', ",", "}", "1e999", "[")
    whole = changed(st.just(METADATA.encode())).map(lambda one: one.decode("latin-1"))
    return whole | texts(*parts) | st.builds(METADATA.replace, *_REPLACED)


_REPLACED: Final = (
    st.sampled_from(("1,0", '"Ag"', "5,1", '"0"', '"p"', '{"0":[5,1]}', "2,")),
    number_texts() | st.sampled_from(("null", "[]", "{}", '"~~~"', "true", "1e999")),
)


def _check_metadata(metadata: Case) -> None:
    for offset in (0, 5):
        with contextlib.suppress(ValueError, MarksFullError):
            progress = decode_metadata(offset, metadata)
            assert (
                decode_metadata(progress.offset, encode_metadata(progress)) == progress
            )
            check_size(TopicPartition("orders", 0), progress, progress.marks)


TARGETS: Final = (
    Target(
        name="headers",
        cases=_headers(),
        check=_check_headers,
        modules=("copies.dead_letter_headers", "worker.retry_topics", "worker.origins"),
        examples=200,
    ),
    Target(
        name="redrives",
        cases=_metadata(),
        check=_check_metadata,
        modules=("dead_letters.progress", "dead_letters.offset_ranges"),
        examples=200,
    ),
)
