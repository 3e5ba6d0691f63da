"""Observes what a consumer or a worker receives, processes and settles."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, final, overload

from opentelemetry import context as current_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind

from sharecons._record import AcknowledgeType, Record
from sharecons.errors import ClosedError, DeserializationError, Error
from sharecons.otel.attributes import (
    DELIVERY_COUNT,
    DISPOSITION,
    PARTITION,
    Attributes,
    error_type_of,
    position_attributes,
    record_attributes,
)
from sharecons.otel.deliveries import Deliveries, Delivery
from sharecons.otel.dispositions import disposition_of, failure_of
from sharecons.otel.operations import MAX_LINKS, Operation, Operations
from sharecons.otel.propagation import (
    NO_CONTEXT,
    Propagation,
    context_of_span,
    span_context_of,
)
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.partitions import SharePartition, TopicId
from sharecons.protocol.share_messages import (
    Acknowledgements,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)
from sharecons.worker.middleware import BatchAttempt

__all__ = ["OtelMemberObserver"]

SETTLING = {
    AcknowledgeType.ACCEPT.value: "accept",
    AcknowledgeType.RELEASE.value: "release",
    AcknowledgeType.REJECT.value: "reject",
}
"""A renewal settles nothing, nor does an offset without a record."""


@final
class ObservedReceive:
    """See `sharecons.instrumentation.Receive`."""

    __slots__ = ("is_batch", "records")

    def __init__(self) -> None:
        self.records: Sequence[Any] = ()
        self.is_batch = True


@final
class ObservedSettle:
    """See `sharecons.instrumentation.Settle`."""

    __slots__ = ("response",)

    def __init__(self) -> None:
        self.response: ShareFetchResponse | ShareAcknowledgeResponse | None = None


@final
class _Links(Sequence[Link]):
    """Links to spans, which are made if the span is sampled.

    A request settles hundreds of records, and making a link takes microseconds.
    """

    def __init__(self, spans: Sequence[SpanContext]) -> None:
        self._spans = spans

    @overload
    def __getitem__(self, index: int) -> Link: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Link]: ...

    def __getitem__(self, index: int | slice) -> Link | Sequence[Link]:
        if isinstance(index, slice):
            return _Links(self._spans[index])
        return Link(self._spans[index])

    def __len__(self) -> int:
        return len(self._spans)


class _Settled(NamedTuple):
    share_partition: SharePartition
    offset: int
    delivery: Delivery


_Settling = dict[tuple[str, int], list[_Settled]]
"""Delivered records by topic and type of acknowledgement."""


@final
class OtelMemberObserver:
    """See `sharecons.instrumentation.MemberObserver`.

    Args:
        producer_as_parent: the context of a single record is the parent of its
            `process` span, unless another span is current.
    """

    def __init__(
        self,
        operations: Operations,
        propagation: Propagation,
        *,
        producer_as_parent: bool,
    ) -> None:
        self._operations = operations
        self._propagation = propagation
        self._producer_as_parent = producer_as_parent
        self._deliveries = Deliveries()

    @property
    def unsettled(self) -> int:
        """How many deliveries are kept until they are settled."""
        return len(self._deliveries)

    # Receiving.

    @contextmanager
    def receiving(self) -> Iterator[ObservedReceive]:
        receive, began = ObservedReceive(), time.perf_counter()
        try:
            yield receive
        except ClosedError:
            raise
        except Error as error:
            self._on_receive_failed(error, began)
            raise
        if receive.records:
            self._on_received(receive, began)

    def _on_receive_failed(self, error: Error, began: float) -> None:
        topic: str | None = None
        links: list[Link] = []
        attributes: Attributes = {}
        if isinstance(error, DeserializationError):  # the application can settle it
            record = error.record
            topic, attributes = record.topic, _attributes_of([record])
            creation = span_context_of(self._propagation.extract(record.headers))
            self._deliveries.add(record, creation)
            links = [] if creation is None else [Link(creation)]
        operation = self._operations.start(
            "receive",
            topic,
            SpanKind.CLIENT,
            links=links,
            attributes=attributes,
            began=began,
        )
        error_type = error_type_of(error)
        self._operations.end(operation, error_type=error_type, error=error)

    def _on_received(self, receive: ObservedReceive, began: float) -> None:
        by_topic: dict[str, list[Record]] = {}
        for record in receive.records:
            by_topic.setdefault(record.topic, []).append(record)
        for topic, records in by_topic.items():
            links: list[Link] = []
            for record in records:
                creation = span_context_of(self._propagation.extract(record.headers))
                self._deliveries.add(record, creation)
                if creation is not None and len(links) < MAX_LINKS:
                    links.append(_link(creation, record, alone=len(records) == 1))
            operation = self._operations.start(
                "receive",
                topic,
                SpanKind.CLIENT,
                links=links,
                count=len(records) if receive.is_batch else None,
                attributes=_attributes_of(records),
                began=began,
            )
            self._operations.end(operation)
            self._operations.count_consumed("receive", topic, len(records))

    # Processing.

    async def process(
        self, attempt: Any, call_next: Callable[[], Awaitable[None]], /
    ) -> None:
        is_batch = isinstance(attempt, BatchAttempt)
        operation, context = self._start_process(
            attempt.records, is_batch=is_batch, ambient=None
        )
        raised: BaseException | None = None
        token = current_context.attach(context)
        try:
            await call_next()
        except BaseException as error:
            raised = error
            raise
        finally:
            current_context.detach(token)
            outcomes = [each.outcome for each in attempt.attempts]
            self._end_process(operation, raised, outcomes)
            raised = None  # a cycle otherwise: the traceback refers to this frame

    @contextmanager
    def processing(
        self, records: Sequence[Record], *, is_batch: bool
    ) -> Iterator[None]:
        """Observe the block as the processing of records that were received."""
        ambient = span_context_of(None)
        operation, context = self._start_process(
            records, is_batch=is_batch, ambient=ambient
        )
        raised: BaseException | None = None
        token = current_context.attach(context)
        try:
            yield
        except BaseException as error:
            raised = error
            raise
        finally:
            current_context.detach(token)
            self._end_process(operation, raised, ())
            raised = None

    def _start_process(
        self, records: Sequence[Record], *, is_batch: bool, ambient: SpanContext | None
    ) -> tuple[Operation, Context]:
        """Return the operation, and the context that is current while it lasts."""
        new = 0
        base: Context | None = None
        parent = ambient
        links: list[Link] = []
        deliveries: list[Delivery] = []
        is_single = len(records) == 1
        for record in records:
            extracted = self._propagation.extract(record.headers)
            creation = span_context_of(extracted)
            delivery, is_new = self._deliveries.add(record, creation)
            deliveries.append(delivery)
            new += is_new
            if creation is not None and len(links) < MAX_LINKS:
                links.append(_link(creation, record, alone=is_single))
            if not is_batch:
                base = extracted
                if self._producer_as_parent and ambient is None:
                    parent = creation
        if ambient is not None:
            base = current_context.get_current()
        topic = records[0].topic if is_single else _topic_of(records)
        operation = self._operations.start(
            "process",
            topic,
            SpanKind.CONSUMER,
            # Without a context, it has neither a parent nor baggage.
            context=NO_CONTEXT
            if parent is None and base is NO_CONTEXT
            else context_of_span(parent, base),
            links=links,
            count=len(records) if is_batch else None,
            attributes=_attributes_of(records),
        )
        span_context = operation.span.get_span_context()
        if span_context.is_valid:
            for delivery in deliveries:
                delivery.process = span_context
        self._operations.count_consumed("process", topic, new)
        base = NO_CONTEXT if base is None else base
        return operation, trace.set_span_in_context(operation.span, base)

    def _end_process(
        self,
        operation: Operation,
        raised: BaseException | None,
        outcomes: Sequence[Any],
    ) -> None:
        attributes: Attributes = {}
        if (disposition := disposition_of(outcomes)) is not None:
            attributes[DISPOSITION] = disposition
        error_type, error = failure_of(raised, outcomes)
        self._operations.end(operation, attributes, error_type=error_type, error=error)

    # Copies.

    @contextmanager
    def copying(self, record: Record) -> Iterator[None]:
        creation = span_context_of(self._propagation.extract(record.headers))
        # A record whose handler was not called is settled after its copy as well.
        delivery, _ = self._deliveries.add(record, creation)
        token = current_context.attach(context_of_span(delivery.process))
        try:
            yield
        finally:
            current_context.detach(token)

    # Settling.

    @contextmanager
    def settling(
        self, topic_names: Mapping[TopicId, str], acknowledgements: Acknowledgements
    ) -> Iterator[ObservedSettle]:
        settle, began = ObservedSettle(), time.perf_counter()
        settled = self._delivered(topic_names, acknowledgements)
        raised: BaseException | None = None
        try:
            yield settle
        except BaseException as error:
            raised = error
            raise
        finally:
            for (topic, kind), records in settled.items():
                self._on_settled(topic, kind, records, settle, raised, began)
            raised = None

    def _delivered(
        self, topic_names: Mapping[TopicId, str], acknowledgements: Acknowledgements
    ) -> _Settling:
        """Return the records that were delivered, by topic and type."""
        settled: _Settling = {}
        for share_partition, ranges in acknowledgements.items():
            topic = topic_names.get(share_partition.topic_id)
            if topic is None:
                continue
            partition, find = share_partition.partition, self._deliveries.find
            for first, last, kinds in ranges:
                if len(kinds) == 1 and kinds[0] not in SETTLING:
                    continue
                for offset in range(first, last + 1):
                    kind = kinds[0] if len(kinds) == 1 else kinds[offset - first]
                    if kind not in SETTLING:
                        continue
                    delivery = find(topic, partition, offset)
                    if delivery is not None:
                        settled.setdefault((topic, kind), []).append(
                            _Settled(share_partition, offset, delivery)
                        )
        return settled

    def _on_settled(
        self,
        topic: str,
        kind: int,
        records: list[_Settled],
        settle: ObservedSettle,
        raised: BaseException | None,
        began: float,
    ) -> None:
        parent = records[0].delivery.process if len(records) == 1 else None
        spans = {
            span.span_id: span
            for each in records[:MAX_LINKS]
            for span in (each.delivery.creation, each.delivery.process)
            if span is not None and span is not parent
        }
        attributes: Attributes = {DISPOSITION: SETTLING[kind]}
        partitions = {each.share_partition.partition for each in records}
        if len(records) == 1:
            partition = records[0].share_partition.partition
            attributes |= position_attributes(partition, records[0].offset)
            attributes[DELIVERY_COUNT] = records[0].delivery.delivery_count
        elif len(partitions) == 1:
            attributes[PARTITION] = str(partitions.pop())
        operation = self._operations.start(
            "settle",
            topic,
            SpanKind.CLIENT,
            context=context_of_span(parent),
            links=_Links(list(spans.values())[:MAX_LINKS]),
            count=len(records),
            attributes=attributes,
            began=began,
        )
        error_type, error = failure_of(raised)
        if raised is None:
            error_type = _remove_settled(self._deliveries, topic, records, settle)
        self._operations.end(operation, error_type=error_type, error=error)


def _remove_settled(
    deliveries: Deliveries, topic: str, records: list[_Settled], settle: ObservedSettle
) -> str | None:
    """Remove the records that the broker has settled; return the first error's name."""
    response = settle.response
    assert response is not None, "no exception was raised"
    if response.error != Code.NONE:
        return code_name(response.error)
    codes = {
        each.share_partition: each.acknowledge_error for each in response.partitions
    }
    error_type: str | None = None
    for share_partition, offset, delivery in records:
        code = codes.get(share_partition, Code.NONE)
        if code == Code.NONE:
            deliveries.remove(topic, share_partition.partition, offset, delivery)
        elif error_type is None:
            error_type = code_name(code)
    return error_type


def _topic_of(records: Sequence[Record]) -> str | None:
    """Return the topic of records; None if they have several."""
    topics = {record.topic for record in records}
    return topics.pop() if len(topics) == 1 else None


def _attributes_of(records: Sequence[Record]) -> Attributes:
    if len(records) == 1:
        return record_attributes(records[0])
    partitions = {(record.topic, record.partition) for record in records}
    return {PARTITION: str(records[0].partition)} if len(partitions) == 1 else {}


def _link(creation: SpanContext, record: Record, *, alone: bool) -> Link:
    """Return a link to a record's context; among others, with its position."""
    if alone:
        return Link(creation)
    attributes = position_attributes(record.partition, record.offset)
    attributes[DELIVERY_COUNT] = record.delivery_count
    return Link(creation, attributes)
