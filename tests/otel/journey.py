"""A record that fails, moves, becomes a dead letter, is redriven and succeeds."""

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind

from sharecons import DeadLetter, Record, RetryPolicy
from sharecons.worker.machine import window
from tests.otel.recorded import Recorded, attributes_of, context_of, links_of

__all__ = ["POLICY", "FailingHandler", "check_journey", "is_child"]

POLICY = RetryPolicy(max_attempts=5, initial=0.2, maximum=0.2, jitter=0.0)


class FailingHandler:
    """Fails three times in `source`, once in `retry`, and then succeeds.

    Records wait in place only until the third failure.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, source: str, retry: str
    ) -> None:
        self.topics: list[str] = []
        self._monkeypatch = monkeypatch
        self._retry = retry
        self.expected = [source, source, source, retry, source]

    async def __call__(self, record: Record[Any, Any]) -> None:
        self.topics.append(record.topic)
        if len(self.topics) == 3:
            self._monkeypatch.setattr(window, "USABLE", 0.0)
        if len(self.topics) <= 3:
            raise TimeoutError("slow")
        if record.topic == self._retry:
            raise DeadLetter("no such customer")


def check_journey(
    recorded: Recorded,
    sent: ReadableSpan,
    *,
    source: str,
    retry: str,
    dead: str,
    producer_as_parent: bool = False,
) -> None:
    """Check every span after the span that sent the record, and every link."""
    sends = [span for span in recorded.named(f"send {source}") if span is not sent]
    assert 1 == len(sends), "the redrive"
    redriven = sends[0]
    first, second, third, last = recorded.named(f"process {source}")
    moved, retried = recorded.one(f"send {retry}"), recorded.one(f"process {retry}")
    lettered = recorded.one(f"send {dead}")
    settle, settle_last = recorded.named(f"settle {source}")
    settle_retried = recorded.one(f"settle {retry}")
    expected = {
        id_of(first): (SpanKind.CONSUMER, "retry", "TimeoutError"),
        id_of(second): (SpanKind.CONSUMER, "retry", "TimeoutError"),
        id_of(third): (SpanKind.CONSUMER, "move", "TimeoutError"),
        id_of(moved): (SpanKind.PRODUCER, None, None),
        id_of(settle): (SpanKind.CLIENT, "accept", None),
        id_of(retried): (SpanKind.CONSUMER, "dead_letter", None),
        id_of(lettered): (SpanKind.PRODUCER, None, None),
        id_of(settle_retried): (SpanKind.CLIENT, "accept", None),
        id_of(redriven): (SpanKind.PRODUCER, None, None),
        id_of(last): (SpanKind.CONSUMER, "accept", None),
        id_of(settle_last): (SpanKind.CLIENT, "accept", None),
    }
    selected = [span for span in recorded.spans if id_of(span) in expected]
    assert 11 == len(expected) == len(selected)
    assert expected == {id_of(span): _described(span) for span in selected}

    # The trace has every record that is written, each copy below its source.
    for copy, written in ((moved, sent), (lettered, moved), (redriven, lettered)):
        assert is_child(copy, written)
    assert [[id_of(third)], [id_of(retried)], []] == [
        links_of(each) for each in (moved, lettered, redriven)
    ]

    # Attempts are linked to the record that they process, or are below it.
    for attempt, written in (
        (first, sent),
        (second, sent),
        (third, sent),
        (retried, moved),
        (last, redriven),
    ):
        assert [id_of(written)] == links_of(attempt)
        if producer_as_parent:
            assert is_child(attempt, written)
        else:
            assert attempt.parent is None

    # Settlements are below the last attempt.
    for settlement, attempt, written in (
        (settle, third, sent),
        (settle_retried, retried, moved),
        (settle_last, last, redriven),
    ):
        assert is_child(settlement, attempt)
        assert [id_of(written)] == links_of(settlement)
    traces = {context_of(span).trace_id for span in [sent, *selected]}
    assert (1 if producer_as_parent else 6) == len(traces)


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return (
        span.parent is not None
        and span.parent.span_id == id_of(parent)
        and context_of(span).trace_id == context_of(parent).trace_id
    )


def id_of(span: ReadableSpan) -> int:
    return context_of(span).span_id


def _described(span: ReadableSpan) -> tuple[SpanKind, Any, Any]:
    attributes = attributes_of(span)
    disposition = attributes.get("sharecons.disposition")
    return span.kind, disposition, attributes.get("error.type")
