"""Records for unit tests: a handler is called with one, and the test reads the verbs.

A made record acts as if each acknowledgement was sent immediately, so that a handler
which settles a record twice always fails. In production it fails only if the first
acknowledgement is sent before the second call.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from threading import get_ident
from typing import Any, Final, final

import anyio

from sharecons import verb_errors
from sharecons.batch import Batch
from sharecons.record import (
    RELEASE,
    RENEW,
    AcknowledgeType,
    AckTarget,
    Headers,
    KeyT,
    Record,
    TimestampType,
    ValueT,
)

__all__ = ["MadeRecord", "make_batch", "make_record"]

INT64_MAX: Final = 2**63 - 1


@final
class _Lock(AckTarget):
    """The acquisition lock of one record, and its acknowledgements."""

    def __init__(self, name: str, *, duration: float, in_worker: bool) -> None:
        now = _loop_time()
        self.acknowledgement: AcknowledgeType | None = None
        self.release_delay: float | None = None
        self.renewals = 0
        self.lost_because: str | None = None
        self._name = name
        self._duration = duration
        self._in_worker = in_worker
        # A fixture can make a record outside of the event loop. The lock then begins
        # when it is first used, as trio's clock is not known before.
        self._deadline = None if now is None else now + duration
        self._thread = None if now is None else get_ident()

    @property
    def is_sent(self) -> bool:
        """True if there is an acknowledgement, except a release that is delayed."""
        return self.acknowledgement is not None and self.release_delay is None

    def acknowledge(self, offset: int, kind: AcknowledgeType) -> None:
        self._check_allowed(kind)
        if self.is_sent:
            if kind is not self.acknowledgement:
                settled_by = self.acknowledgement or kind
                raise verb_errors.already_settled(kind, self._name, settled_by)
            return
        if self.lost_because is not None:
            raise verb_errors.lock_lost(kind, self._name, self.lost_because)
        self.acknowledgement = None if kind is RENEW else kind
        self.release_delay = None
        if kind is RENEW:
            self.renewals += 1
            self._deadline = _now() + self._duration

    def release_later(self, offset: int, after: object) -> None:
        delay = verb_errors.check_delay(after)
        was_sent = self.is_sent
        self.acknowledge(offset, RELEASE)
        if delay and was_sent:
            raise verb_errors.already_settled(RELEASE, self._name, RELEASE)
        self.release_delay = delay or None

    def deadline_of(self, offset: int) -> float:
        if self.lost_because is not None:
            return float("-inf")
        if self._deadline is None:
            self._deadline = _now() + self._duration
        return self._deadline

    def remaining_of(self, offset: int) -> float:
        return max(0.0, self.deadline_of(offset) - _now())

    def holds(self, offset: int) -> bool:
        return self.acknowledgement is None and self.remaining_of(offset) > 0.0

    def _check_allowed(self, kind: AcknowledgeType) -> None:
        if self._in_worker and kind is not RENEW:
            raise verb_errors.guarded(kind, self._name)
        if self._thread not in (None, get_ident()):
            raise verb_errors.wrong_thread(kind, self._name)


@final
class MadeRecord(Record[KeyT, ValueT]):
    """A record that `make_record` has made; it has no consumer."""

    __slots__ = ()

    @property
    def acknowledgement(self) -> AcknowledgeType | None:
        """ACCEPT, RELEASE or REJECT; None if the record is not acknowledged."""
        return self._lock.acknowledgement

    @property
    def release_delay(self) -> float | None:
        """The seconds of `release(after=...)`; None without a delay."""
        return self._lock.release_delay

    @property
    def renewals(self) -> int:
        """How many times the lock was renewed."""
        return self._lock.renewals

    def lose_lock(self, reason: str = "the connection was lost") -> None:
        """End the lock of a record that is not acknowledged.

        `held` is then False, and the verbs raise LockLostError with this reason.
        """
        self._lock.lost_because = reason

    @property
    def _lock(self) -> _Lock:
        assert isinstance(self._ack_target, _Lock)
        return self._ack_target


@final
class _BatchLock(AckTarget):
    """The locks of the records of a batch."""

    def __init__(self, records: Sequence[MadeRecord[Any, Any]]) -> None:
        self._records = records

    def is_open(self, offset: int) -> bool:
        return any(each.offset == offset for each in self._open)

    def acknowledge_open(self, start: int, stop: int, kind: AcknowledgeType) -> None:
        for record in self._open:
            getattr(record, kind.name.lower())()

    def release_open_later(self, start: int, stop: int, after: object) -> None:
        delay = verb_errors.check_delay(after)
        for record in self._open:
            record.release(after=delay)

    @property
    def _open(self) -> list[MadeRecord[Any, Any]]:
        return [each for each in self._records if each.acknowledgement is None]


def make_record(
    value: ValueT | None = None,
    *,
    key: KeyT | None = None,
    headers: Iterable[tuple[str, bytes | None]] = (),
    topic: str = "test",
    partition: int = 0,
    offset: int = 0,
    timestamp: int = 0,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    delivery_count: int = 1,
    lock_duration: float = 30.0,
    held: bool = True,
    in_worker: bool = False,
) -> MadeRecord[KeyT, ValueT]:
    """Return a record for a unit test, as a consumer returns it.

    Args:
        value, key: of any type, as after deserializers.
        headers: pairs of a name and bytes or None.
        timestamp: milliseconds since the epoch; -1 for none.
        lock_duration: seconds until the lock ends, on the event loop's clock.
        held: False for a record whose lock is lost.
        in_worker: True for a record as a worker passes it to a handler: its verbs,
            except `renew`, raise RecordStateError.

    Raises:
        TypeError: an argument has a type that records do not have.
        ValueError: a number is out of range.
    """
    _check_number("partition", partition, 0)
    _check_number("offset", offset, 0)
    _check_number("timestamp", timestamp, -1)
    _check_number("delivery_count", delivery_count, 1)
    if not isinstance(topic, str):
        raise TypeError(f"topic must be a str, not {topic!r}")
    if lock_duration <= 0:
        raise ValueError(f"lock_duration must be greater than 0, not {lock_duration!r}")
    name = f"{topic}-{partition}@{offset}"
    lock = _Lock(name, duration=lock_duration, in_worker=in_worker)
    record: MadeRecord[KeyT, ValueT] = MadeRecord(
        topic,
        partition,
        offset,
        timestamp,
        timestamp_type,
        key,
        value,
        _checked_headers(headers),
        delivery_count,
        lock,
    )
    if not held:
        record.lose_lock()
    return record


def make_batch(records: Sequence[MadeRecord[KeyT, ValueT]]) -> Batch[KeyT, ValueT]:
    """Return a batch of made records, as `ShareConsumer.batches` returns it.

    Raises:
        TypeError: a record was not made by `make_record`.
        ValueError: there is no record, or the records are not of one partition, with
            ascending offsets.
    """
    for each in records:
        if not isinstance(each, MadeRecord):
            raise TypeError(
                f"make_batch takes records of make_record, not {each!r:.200}"
            )
    partitions = {(each.topic, each.partition) for each in records}
    offsets = [each.offset for each in records]
    if len(partitions) != 1 or offsets != sorted(set(offsets)):
        raise ValueError(
            "a batch has records of one partition with ascending offsets, not "
            f"{list(records)!r:.200}; write make_record(..., offset=1)"
        )
    return Batch(_BatchLock(records), records, 0)


def _checked_headers(headers: Iterable[tuple[str, bytes | None]]) -> Headers:
    is_one = isinstance(headers, str | bytes | Mapping)
    found = (headers,) if is_one or not isinstance(headers, Iterable) else headers
    return tuple(map(_checked_header, found))


def _checked_header(header: object) -> tuple[str, bytes | None]:
    match header:
        case (str() as name, (bytes() | None) as value):
            return name, value
    raise TypeError(
        "headers must be pairs of a str and bytes or None, as in "
        f"headers=[('trace', b'1')], not {header!r:.200}"
    )


def _check_number(name: str, number: int, least: int) -> None:
    if not isinstance(number, int):
        raise TypeError(f"{name} must be an int, not {number!r:.200}")
    if not least <= number <= INT64_MAX:
        raise ValueError(f"{name} must be from {least} to {INT64_MAX}, not {number}")


def _loop_time() -> float | None:
    """Return the time of the event loop; None outside of one."""
    try:
        return anyio.current_time()
    except RuntimeError:
        return None


def _now() -> float:
    now = _loop_time()
    return time.monotonic() if now is None else now
