"""Records that unit tests of handlers make."""

import pickle
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import anyio
import anyio.to_thread
import pytest

from sharecons import (
    AcknowledgeType,
    Attempt,
    BatchAttempt,
    CallNext,
    ConfigurationError,
    HandlerBatch,
    LockLostError,
    Record,
    RecordStateError,
    ShareWorker,
    TimestampType,
)
from sharecons.errors import WrongThreadError
from sharecons.testing import MadeRecord, make_batch, make_record
from tests.protocol.lease_factories import (
    TYPE_PAIRS,
    lease_of,
    lose_locks,
    settle,
    take_runs,
)

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType

VERBS: dict[AcknowledgeType, Callable[[Any], None]] = {
    ACCEPT: Record.accept,
    RELEASE: Record.release,
    REJECT: Record.reject,
    RENEW: Record.renew,
}
SETTLING = (ACCEPT, RELEASE, REJECT)


@pytest.fixture
def anyio_backend(virtual_clock: Any) -> Any:
    return virtual_clock


# The fields.


def test_made_record_has_the_fields_it_is_made_with() -> None:
    record = make_record(
        {"amount": 3},
        key="k",
        headers=[("trace", b"1"), ("empty", None)],
        topic="orders",
        partition=2,
        offset=7,
        timestamp=1_700_000_000_000,
        delivery_count=3,
    )

    assert isinstance(record, Record)
    assert {"amount": 3} == record.value
    assert "k" == record.key
    assert (("trace", b"1"), ("empty", None)) == record.headers
    assert ("orders", 2, 7) == (record.topic, record.partition, record.offset)
    assert 1_700_000_000_000 == record.timestamp
    assert 3 == record.delivery_count
    assert "<Record orders-2@7 delivery_count=3>" == repr(record)


def test_made_record_without_arguments_is_a_tombstone() -> None:
    record = make_record()

    assert (None, None, ()) == (record.key, record.value, record.headers)
    assert ("test", 0, 0, 1) == (
        record.topic,
        record.partition,
        record.offset,
        record.delivery_count,
    )


@pytest.mark.parametrize("value", ["text", 7, b"", memoryview(b"view"), [1], object()])
def test_value_of_a_made_record_can_have_any_type(value: object) -> None:
    assert value is make_record(value).value


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        (
            {"offset": -1},
            ValueError,
            "offset must be from 0 to 9223372036854775807, not",
        ),
        ({"partition": -1}, ValueError, "partition must be from 0 to"),
        ({"timestamp": -2}, ValueError, "timestamp must be from -1 to"),
        ({"delivery_count": 0}, ValueError, "delivery_count must be from 1 to"),
        ({"offset": 2**63}, ValueError, "offset must be from 0 to 9223372036854775807"),
        ({"timestamp": 1.5}, TypeError, "timestamp must be an int, not 1.5"),
        ({"offset": "7"}, TypeError, "offset must be an int, not '7'"),
        ({"topic": b"t"}, TypeError, "topic must be a str, not b't'"),
        ({"lock_duration": 0}, ValueError, "lock_duration must be greater than 0"),
        (
            {"headers": {"trace": b"1"}},
            TypeError,
            "headers must be pairs of a str and bytes or None, as in "
            "headers=[('trace', b'1')], not {'trace': b'1'}",
        ),
        ({"headers": [("trace", "1")]}, TypeError, "not ('trace', '1')"),
        ({"headers": [(b"trace", b"1")]}, TypeError, "not (b'trace', b'1')"),
        ({"headers": "trace"}, TypeError, "not 'trace'"),
        ({"headers": None}, TypeError, "not None"),
    ],
)
def test_made_record_with_an_impossible_field_is_an_error(
    fields: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        make_record(b"v", **fields)

    assert text in str(raised.value)


def test_pickled_made_record_is_a_copy_that_cannot_be_acknowledged() -> None:
    copy = pickle.loads(pickle.dumps(make_record(b"v", offset=3)))

    assert (b"v", 3) == (copy.value, copy.offset)
    with pytest.raises(RecordStateError):
        copy.accept()


# The verbs.


@pytest.mark.parametrize("kind", SETTLING)
def test_acknowledgement_of_a_made_record_is_the_verb(kind: AcknowledgeType) -> None:
    record = make_record(b"v")
    assert record.acknowledgement is None

    VERBS[kind](record)
    VERBS[kind](record)

    assert record.acknowledgement is kind
    assert not record.held


def test_renewals_of_a_made_record_are_counted() -> None:
    record = make_record(b"v")

    record.renew()
    record.renew()

    assert 2 == record.renewals
    assert record.acknowledgement is None
    assert record.held


@pytest.mark.parametrize("first", SETTLING)
@pytest.mark.parametrize("second", AcknowledgeType)
def test_second_verb_of_a_made_record_raises_as_after_the_first_was_sent(
    first: AcknowledgeType, second: AcknowledgeType
) -> None:
    if first is second:
        return
    record = make_record(b"v", topic="orders", offset=7)
    VERBS[first](record)

    with pytest.raises(RecordStateError) as raised:
        VERBS[second](record)

    assert (
        f"cannot {second.name.lower()} orders-0@7: it was settled by "
        f"{first.name.lower()}, and that was sent"
    ) == str(raised.value)
    assert record.acknowledgement is first


def error_of(record: Any, kind: AcknowledgeType) -> str | None:
    try:
        VERBS[kind](record)
    except RecordStateError as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize(("first", "second"), TYPE_PAIRS)
@pytest.mark.parametrize("is_lost", [False, True], ids=["held", "lost"])
def test_made_record_raises_as_a_record_of_a_lease_whose_first_verb_was_sent(
    first: AcknowledgeType, second: AcknowledgeType, is_lost: bool
) -> None:
    lease, reason = lease_of(7), "a test"
    kind = TimestampType.CREATE_TIME
    delivered = Record("orders", 0, 7, 0, kind, None, b"v", (), 1, lease)
    made = make_record(b"v", topic="orders", offset=7)
    for record in (delivered, made):
        VERBS[first](record)
    settle(lease, take_runs(lease))
    if is_lost:
        lease.lock_scope.reason = reason
        lose_locks(lease)
        made.lose_lock(reason)

    assert error_of(delivered, second) == error_of(made, second)


def test_release_of_a_made_record_has_its_delay() -> None:
    record = make_record(b"v")

    record.release(after=5)

    assert (RELEASE, 5.0) == (record.acknowledgement, record.release_delay)
    assert not record.held


def test_delayed_release_of_a_made_record_can_be_replaced() -> None:
    record = make_record(b"v")
    record.release(after=5)

    record.accept()

    assert (ACCEPT, None) == (record.acknowledgement, record.release_delay)


@pytest.mark.parametrize("settled", [lambda r: r.accept(), lambda r: r.release()])
def test_delayed_release_of_a_settled_made_record_raises(settled: Any) -> None:
    record = make_record(b"v")
    settled(record)

    with pytest.raises(RecordStateError):
        record.release(after=5)

    assert record.release_delay is None


@pytest.mark.parametrize("after", [-1, 3601, "5", True])
def test_made_record_is_not_released_after_an_invalid_delay(after: Any) -> None:
    record = make_record(b"v")

    with pytest.raises(ConfigurationError):
        record.release(after=after)

    assert record.acknowledgement is None


@pytest.mark.parametrize("kind", SETTLING)
def test_made_record_in_a_worker_is_not_acknowledged_by_its_handler(
    kind: AcknowledgeType,
) -> None:
    record = make_record(b"v", in_worker=True)

    with pytest.raises(RecordStateError, match="it belongs to a worker"):
        VERBS[kind](record)

    record.renew()
    assert (None, 1) == (record.acknowledgement, record.renewals)


@pytest.mark.anyio
async def test_verb_of_a_made_record_in_another_thread_raises() -> None:
    record = make_record(b"v")

    with pytest.raises(WrongThreadError):
        await anyio.to_thread.run_sync(record.accept)

    assert record.acknowledgement is None


# The lock.


@pytest.mark.anyio
async def test_lock_of_a_made_record_ends_at_its_deadline() -> None:
    record = make_record(b"v", lock_duration=10.0)
    assert 10.0 == pytest.approx(record.lock_remaining)
    assert anyio.current_time() + 10.0 == pytest.approx(record.lock_deadline)

    await anyio.sleep(9.0)
    record.renew()
    await anyio.sleep(9.0)
    assert record.held

    await anyio.sleep(2.0)
    assert not record.held
    assert 0.0 == record.lock_remaining


@pytest.fixture
def made_in_a_fixture() -> MadeRecord[bytes, bytes]:
    return make_record(b"v")


@pytest.mark.anyio
async def test_lock_of_a_record_made_outside_of_the_loop_has_the_clock_of_the_loop(
    made_in_a_fixture: MadeRecord[bytes, bytes],
) -> None:
    assert made_in_a_fixture.held
    assert 30.0 == pytest.approx(made_in_a_fixture.lock_remaining)
    assert anyio.current_time() + 30.0 == pytest.approx(made_in_a_fixture.lock_deadline)


def test_lock_of_a_made_record_without_a_loop_is_held() -> None:
    record = make_record(b"v")

    assert record.held
    assert 29.0 < record.lock_remaining <= 30.0


@pytest.mark.parametrize("kind", AcknowledgeType)
def test_verbs_of_a_made_record_that_is_not_held_raise(kind: AcknowledgeType) -> None:
    record = make_record(b"v", held=False)

    assert not record.held
    assert 0.0 == record.lock_remaining
    assert -inf == record.lock_deadline
    with pytest.raises(LockLostError, match="the connection was lost"):
        VERBS[kind](record)


def test_lock_of_a_made_record_can_be_lost_while_its_handler_runs() -> None:
    record = make_record(b"v")
    record.renew()

    record.lose_lock("a test")

    assert not record.held
    with pytest.raises(LockLostError, match="the acquisition lock was lost: a test"):
        record.accept()
    assert record.acknowledgement is None


def test_lock_that_is_lost_after_an_acknowledgement_changes_nothing() -> None:
    record = make_record(b"v")
    record.accept()

    record.lose_lock()

    record.accept()
    assert record.acknowledgement is ACCEPT


# Batches.


def made_records(count: int = 3) -> list[MadeRecord[bytes, bytes]]:
    return [make_record(b"%d" % each, offset=each) for each in range(count)]


def test_batch_of_made_records_acknowledges_the_open_ones() -> None:
    records = made_records()
    batch = make_batch(records)
    assert batch.held
    assert ("test", 0, 3) == (batch.topic, batch.partition, len(batch))

    batch[1].reject()
    assert batch.held
    batch.accept()

    kinds = [each.acknowledgement for each in records]
    assert [ACCEPT, REJECT, ACCEPT] == kinds
    assert not batch.held


def test_batch_of_made_records_renews_and_is_released_later() -> None:
    records = made_records(2)
    batch = make_batch(records)

    batch.renew()
    batch.release(after=5)

    assert [1, 1] == [each.renewals for each in records]
    assert [5.0, 5.0] == [each.release_delay for each in records]


def test_batch_of_made_records_with_a_lost_lock_raises() -> None:
    records = made_records()
    records[1].lose_lock()
    batch = make_batch(records)

    assert not batch.held
    with pytest.raises(LockLostError):
        batch.accept()


@pytest.mark.parametrize(
    "records",
    [
        [],
        [make_record(), make_record()],
        [make_record(offset=1), make_record(offset=0)],
        [make_record(), make_record(topic="other", offset=1)],
    ],
    ids=["none", "same offset", "descending", "two topics"],
)
def test_batch_of_records_that_no_batch_has_is_an_error(records: Any) -> None:
    with pytest.raises(ValueError, match=r"make_record\(\.\.\., offset=1\)"):
        make_batch(records)


def test_batch_of_records_that_are_not_made_is_an_error() -> None:
    with pytest.raises(TypeError, match="make_batch takes records of make_record"):
        make_batch([b"v"])  # type: ignore[list-item]


# Code that runs in a worker.


def test_handler_batch_of_made_records_has_the_failures() -> None:
    records = made_records(2)
    batch = HandlerBatch(records)
    error = ValueError("no")

    batch.fail(batch[1], error)

    assert [None, error] == batch.errors()


def test_origin_of_a_made_record_is_its_position() -> None:
    worker: ShareWorker[bytes, bytes] = ShareWorker(group_id="billing")

    @worker.handler("orders")
    async def charge(record: Record[bytes, bytes]) -> str:
        origin = worker.origin(record)
        return f"{origin.topic}-{origin.partition}-{origin.offset}"

    async def run() -> str:
        return await charge(make_record(b"v", topic="orders", offset=7))

    assert "orders-0-7" == anyio.run(run)


@pytest.mark.anyio
async def test_middleware_can_be_called_with_a_made_record() -> None:
    seen: list[object] = []

    async def handler(record: Record[bytes, bytes]) -> None:
        seen.append(record.value)

    async def middleware(attempt: Attempt[bytes, bytes], call_next: CallNext) -> None:
        seen.append(attempt.number)
        await call_next()

    record = make_record(b"v")
    await middleware(Attempt(record, 2, "charge"), partial(handler, record))

    assert [2, b"v"] == seen


def test_batch_attempt_has_made_records() -> None:
    attempts = tuple(Attempt(each, 1, "charge") for each in made_records(2))

    assert (b"0", b"1") == tuple(
        each.value for each in BatchAttempt(attempts, "charge").records
    )
