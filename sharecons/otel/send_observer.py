"""Observes what is written: records of an application, and copies of records.

An application's record begins a message: the span's context goes into its headers,
unless the application has put a context there. A copy continues a message: its span is
a child of the context in its headers, and replaces it. So one trace has the record's
send, its retry topics, its dead letter and its redrive.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, final

from opentelemetry import trace
from opentelemetry.trace import Link, SpanContext, SpanKind

from sharecons.otel.attributes import (
    KEY,
    TOMBSTONE,
    Attributes,
    error_type_of,
    key_text,
    position_attributes,
)
from sharecons.otel.dispositions import failure_of
from sharecons.otel.operations import Operation, Operations
from sharecons.otel.propagation import Propagation, context_of_span, span_context_of
from sharecons.producer.records import RecordPosition
from sharecons.records.encoder import NewRecord

__all__ = ["ObservedSend", "OtelSendObserver"]


@final
class ObservedSend:
    """See `sharecons.instrumentation.Send`."""

    __slots__ = ("outcomes", "records")

    def __init__(self, records: list[NewRecord]) -> None:
        self.records = records
        self.outcomes: Sequence[object] = ()


class _Group(NamedTuple):
    """The records of one span, by their numbers."""

    operation: Operation
    numbers: list[int]


@final
class OtelSendObserver:
    """See `sharecons.instrumentation.SendObserver`.

    Args:
        continues: the records are copies; see above.
    """

    def __init__(
        self, operations: Operations, propagation: Propagation, *, continues: bool
    ) -> None:
        self._operations = operations
        self._propagation = propagation
        self._continues = continues

    @contextmanager
    def sending(
        self, topics: Sequence[str], records: Sequence[NewRecord]
    ) -> Iterator[ObservedSend]:
        send = ObservedSend(list(records))
        groups = self._start(topics, send.records)
        failure: BaseException | None = None
        try:
            yield send
        except BaseException as error:
            failure = error
            raise
        finally:
            for group in groups:
                self._end(group, send.outcomes, failure)

    def _start(self, topics: Sequence[str], records: list[NewRecord]) -> list[_Group]:
        numbers_by_topic: dict[str, list[int]] = {}
        for number, topic in enumerate(topics):
            numbers_by_topic.setdefault(topic, []).append(number)
        if self._continues:
            return [
                self._continue(topic, number, records)
                for topic, numbers in numbers_by_topic.items()
                for number in numbers
            ]
        return [
            self._begin(topic, numbers, records)
            for topic, numbers in numbers_by_topic.items()
        ]

    def _begin(
        self, topic: str, numbers: list[int], records: list[NewRecord]
    ) -> _Group:
        """Start the span of records of an application."""
        found = {each: self._creation_of(records[each]) for each in numbers}
        given = [each for each in found.values() if each is not None]
        is_single = len(numbers) == 1
        operation = self._operations.start(
            "send",
            topic,
            SpanKind.CLIENT if len(given) == len(numbers) else SpanKind.PRODUCER,
            links=[Link(each) for each in given],
            count=None if is_single else len(numbers),
            attributes=_attributes_of(records[numbers[0]]) if is_single else None,
        )
        for number, creation in found.items():
            if creation is None:
                self._inject(operation, number, records)
        return _Group(operation, numbers)

    def _continue(self, topic: str, number: int, records: list[NewRecord]) -> _Group:
        """Start the span of a copy."""
        record = records[number]
        context = self._propagation.extract(record.headers)
        current = span_context_of(None)
        parent = span_context_of(context) or current
        links = [] if current is None or current == parent else [Link(current)]
        operation = self._operations.start(
            "send",
            topic,
            SpanKind.PRODUCER,
            context=context_of_span(parent, context),
            links=links,
            attributes=_attributes_of(record),
        )
        self._inject(operation, number, records)
        return _Group(operation, [number])

    def _creation_of(self, record: NewRecord) -> SpanContext | None:
        return span_context_of(self._propagation.extract(record.headers))

    def _inject(
        self, operation: Operation, number: int, records: list[NewRecord]
    ) -> None:
        record = records[number]
        if self._continues:
            base = self._propagation.extract(record.headers)  # keeps the baggage
            context = trace.set_span_in_context(operation.span, base)
        else:
            context = trace.set_span_in_context(operation.span)
        headers = self._propagation.inject(record.headers, context)
        records[number] = record._replace(headers=headers)

    def _end(
        self,
        group: _Group,
        outcomes: Sequence[object],
        failure: BaseException | None,
    ) -> None:
        operation, numbers = group
        if failure is not None:
            error_type, error = failure_of(failure)
            self._operations.end(operation, error_type=error_type, error=error)
            self._operations.count_sent(operation.topic, len(numbers), error_type)
            return
        attributes: Attributes = {}
        written = [outcomes[number] for number in numbers]
        errors = [each for each in written if isinstance(each, BaseException)]
        if len(numbers) == 1 and isinstance(written[0], RecordPosition):
            attributes = position_attributes(written[0].partition, written[0].offset)
        first = errors[0] if errors else None
        self._operations.end(
            operation,
            attributes,
            error_type=None if first is None else error_type_of(first),
            error=first,
        )
        self._operations.count_sent(operation.topic, len(numbers) - len(errors))
        for error in errors:
            self._operations.count_sent(operation.topic, 1, error_type_of(error))


def _attributes_of(record: NewRecord) -> Attributes:
    attributes: Attributes = {}
    if (key := key_text(record.key)) is not None:
        attributes[KEY] = key
    if record.value is None:
        attributes[TOMBSTONE] = True
    return attributes
