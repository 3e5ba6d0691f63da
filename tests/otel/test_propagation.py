"""The context of records with headers: which ones the propagator looks at."""

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, TextMapPropagator
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from sharecons.otel.failures import Failures
from sharecons.otel.propagation import NO_CONTEXT, Propagation, span_context_of

PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = (("id", b"7"), ("trace", b"no"))


class Reading(TextMapPropagator):
    """Looks up `names`; the first one that a record has is the id of its span.

    It writes another header, as B3's propagator for several headers does.
    """

    fields = frozenset({"written"})

    def __init__(self, *names: str, reads_all: bool = False) -> None:
        self._names = names
        self._reads_all = reads_all
        self.extracted = 0

    def extract(
        self, carrier: Any, context: Context | None = None, getter: Getter[Any] = None
    ) -> Context:  # type: ignore[override]
        self.extracted += 1
        names = getter.keys(carrier) if self._reads_all else self._names
        for name in names:
            if found := getter.get(carrier, name):
                span_id = int(found[0])
                span = SpanContext(
                    1, span_id, is_remote=True, trace_flags=TraceFlags(1)
                )
                return trace.set_span_in_context(NonRecordingSpan(span), context)
        return Context() if context is None else context

    def inject(self, *_: Any, **__: Any) -> None: ...


def span_id(propagation: Propagation, headers: Any) -> int | None:
    found = span_context_of(propagation.extract(headers))
    return None if found is None else found.span_id


@pytest.mark.parametrize("headers", [(), OTHER])
def test_record_without_headers_of_a_context_has_none(headers: Any) -> None:
    propagation = Propagation(None, Failures())

    assert NO_CONTEXT is propagation.extract(headers)


@pytest.mark.parametrize("header", ["traceparent", "baggage"])
def test_context_is_extracted_beside_other_headers(header: str) -> None:
    propagation = Propagation(None, Failures())
    value = PARENT if header == "traceparent" else b"tenant=7"

    context = propagation.extract((*OTHER, (header, value)))

    assert 1 == len(context)


def test_propagator_is_not_called_without_a_header_that_it_looks_up() -> None:
    propagator = Reading("several", "single")
    propagation = Propagation(propagator, Failures())

    assert [None] * 3 == [span_id(propagation, OTHER) for _ in range(3)]
    assert 1 == propagator.extracted, "to find out what it looks up"
    assert [5, 6] == [
        span_id(propagation, ((n, b),))
        for n, b in (("several", b"5"), ("single", b"6"))
    ]


def test_propagator_that_reads_all_names_is_always_called() -> None:
    propagation = Propagation(Reading(reads_all=True), Failures())

    assert 9 == span_id(propagation, (("any", b"9"),))
