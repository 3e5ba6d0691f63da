"""Applying the application's deserializers.

This module is not compiled, because mypyc ignores the cause in `raise ... from`.
"""

from collections.abc import Callable
from typing import Any, cast

from sharecons._record import Record
from sharecons.config.callables import check_callable
from sharecons.errors import DeserializationError
from sharecons.guard import raise_exit
from sharecons.record import Record as TypedRecord

__all__ = ["Deserializer", "Deserializers"]

Deserializer = Callable[[bytes], Any]


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
        try:
            return stop, failure
        finally:
            failure = None  # its traceback refers to this frame


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
