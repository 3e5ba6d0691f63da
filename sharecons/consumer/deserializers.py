"""Decoding leases to records, and applying the application's deserializers.

This module is not compiled, because mypyc ignores the cause in `raise ... from`.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from sharecons._record import REJECT, RELEASE, Record
from sharecons.config.callables import check_callable
from sharecons.errors import CorruptRecordsError, DeserializationError
from sharecons.log import get_logger
from sharecons.net.io.callbacks import raise_exit
from sharecons.protocol.acknowledge.ack_states import Run
from sharecons.protocol.acknowledge.damaged_records import DamagedRange
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.record import Record as TypedRecord
from sharecons.records.batch import Undecodable, decode
from sharecons.records.errors import is_damage

__all__ = ["Deserializer", "Deserializers", "decode_lease"]

Deserializer = Callable[[bytes], Any]

_log = get_logger(__name__)


class Deserializers:
    """The application's deserializers; None is not deserialized."""

    def __init__(self, key: Deserializer | None, value: Deserializer | None) -> None:
        check_callable("key_deserializer", key)
        check_callable("value_deserializer", value)
        self._key = key
        self._value = value

    def __bool__(self) -> bool:
        return self._key is not None or self._value is not None

    def apply(self, record: Record) -> Record:
        """Return the record with a deserialized key and value.

        Raises:
            DeserializationError: a deserializer raised.
        """
        key = _apply(record, "key", self._key, record.key)
        value = _apply(record, "value", self._value, record.value)
        return record.with_values(key, value)

    def apply_all(
        self, records: list[Any], start: int, stop: int
    ) -> tuple[int, DeserializationError | None]:
        """Replace records in a list, up to the first that cannot be deserialized.

        Return its index, or `stop`, and its error. After any other exception the list
        is unchanged.
        """
        done: list[Any] = []
        failure: DeserializationError | None = None
        for record in records[start:stop]:
            try:
                done.append(self.apply(record))
            except DeserializationError as error:
                failure = error
                break
        stop = start + len(done)
        records[start:stop] = done
        return stop, failure


def _apply(
    record: Record, part: str, deserializer: Deserializer | None, data: Any
) -> Any:
    if deserializer is None or data is None:
        return data
    try:
        return deserializer(data)
    except BaseException as error:
        raise_exit(error)
        where = f"{record.topic}-{record.partition}@{record.offset}"
        raw_record = cast("TypedRecord[bytes, bytes]", record)
        raise DeserializationError(raw_record, part, where) from error


def decode_lease(lease: Lease) -> tuple[list[Record], int, list[CorruptRecordsError]]:
    """Decode a lease; return its records, their size in bytes, and errors to raise.

    Also sets in the lease which offsets have records. It releases acquired offsets
    that the response does not contain, and damaged records, because another replica
    or transfer might be intact; it rejects them if they are damaged again. It
    acknowledges offsets without a record as gaps.
    """
    topic, partition = lease.topic, lease.share_partition.partition
    decoded = decode(lease.payload, lease.acquired, topic, partition, lease)
    records = decoded.records
    if len(records) == lease.count and len(lease.acquired) == 1:
        lease.set_dense_offsets()
        return records, decoded.size, []
    unseen = [Run(first, last, RELEASE) for first, last in decoded.unseen]
    errors = _errors_of(lease, decoded.undecodable)
    damaged = [_run_of(error) for error in errors]
    lease.set_offsets(
        _offsets(records), gaps=decoded.gaps, undeliverable=[*damaged, *unseen]
    )
    if decoded.unseen:
        _log.warning(
            "acquired offsets came without their records, and were released",
            topic=topic,
            partition=partition,
            ranges=decoded.unseen[:3],
        )
    return records, decoded.size, errors


def _errors_of(
    lease: Lease, undecodable: Sequence[Undecodable]
) -> list[CorruptRecordsError]:
    return [
        CorruptRecordsError(
            each.reason,
            topic=lease.topic,
            partition=lease.share_partition.partition,
            first_offset=damaged.first_offset,
            last_offset=damaged.last_offset,
            rejected=damaged.rejected,
        )
        for each in undecodable
        for damaged in _treat(lease, each)
    ]


def _treat(lease: Lease, undecodable: Undecodable) -> Sequence[DamagedRange]:
    first, last, reason = undecodable
    if not is_damage(reason):
        return [DamagedRange(first, last, rejected=False)]
    return lease.result_log.damaged.treat(lease.share_partition, first, last)


def _run_of(error: CorruptRecordsError) -> Run:
    kind = REJECT if error.rejected else RELEASE
    return Run(error.first_offset, error.last_offset, kind)


def _offsets(records: Sequence[Record]) -> Sequence[int]:
    if not records:
        return ()
    first, last = records[0].offset, records[-1].offset
    if last - first + 1 == len(records):
        return range(first, last + 1)  # the usual case, without a copy
    return [record.offset for record in records]
