"""Observes the requests that settle the records of a consumer or a worker."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, final, overload

from opentelemetry.trace import Link, SpanContext, SpanKind

from sharecons._record import AcknowledgeType
from sharecons.otel.attributes import (
    DELIVERY_COUNT,
    DISPOSITION,
    PARTITION,
    Attributes,
    position_attributes,
)
from sharecons.otel.deliveries import Deliveries, Delivery
from sharecons.otel.dispositions import failure_of
from sharecons.otel.operations import MAX_LINKS, Operations
from sharecons.otel.propagation import context_of_span
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.partitions import SharePartition, TopicId
from sharecons.protocol.share_messages import (
    Acknowledgements,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)

__all__ = ["ObservedSettle", "Settlements"]

SETTLING = {
    AcknowledgeType.ACCEPT.value: "accept",
    AcknowledgeType.RELEASE.value: "release",
    AcknowledgeType.REJECT.value: "reject",
}
"""A renewal settles nothing, nor does an offset without a record."""


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
class Settlements:
    """Makes a span for the records of one topic and type in a request.

    Args:
        deliveries: of the member; settled ones are removed.
    """

    def __init__(self, operations: Operations, deliveries: Deliveries) -> None:
        self._operations = operations
        self._deliveries = deliveries

    @contextmanager
    def settling(
        self, topic_names: Mapping[TopicId, str], acknowledgements: Acknowledgements
    ) -> Iterator[ObservedSettle]:
        """Return a context manager whose block sends a request and has its response."""
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
