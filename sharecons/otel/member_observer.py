"""Observes what a consumer or a worker receives, processes and copies."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, final

from opentelemetry import context as current_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind

from sharecons._record import Record
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
from sharecons.otel.settlements import ObservedSettle, Settlements
from sharecons.protocol.partitions import TopicId
from sharecons.protocol.share_messages import Acknowledgements
from sharecons.worker.middleware import BatchAttempt

__all__ = ["OtelMemberObserver"]


@final
class ObservedReceive:
    """See `sharecons.instrumentation.Receive`."""

    __slots__ = ("is_batch", "records")

    def __init__(self) -> None:
        self.records: Sequence[Any] = ()
        self.is_batch = True


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
        self._settlements = Settlements(operations, self._deliveries)

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

    # Settling.

    def settling(
        self, topic_names: Mapping[TopicId, str], acknowledgements: Acknowledgements
    ) -> AbstractContextManager[ObservedSettle]:
        return self._settlements.settling(topic_names, acknowledgements)

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
