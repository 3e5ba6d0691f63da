"""The context in the headers of a record: the creation context of the message.

Any producer can write these headers, so a context only connects spans: it decides
nothing.
"""

from typing import Final

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, Setter, TextMapPropagator
from opentelemetry.trace import SpanContext

from sharecons._record import Headers
from sharecons.otel.failures import Failures

__all__ = ["Propagation", "context_of_span", "span_context_of"]


class _HeaderGetter(Getter[Headers]):
    def get(self, carrier: Headers, key: str) -> list[str] | None:
        values = [
            value.decode("utf-8", "replace")
            for name, value in carrier
            if name == key and value is not None
        ]
        return values or None

    def keys(self, carrier: Headers) -> list[str]:
        return [name for name, _ in carrier]


class _HeaderSetter(Setter[list[tuple[str, bytes | None]]]):
    def set(
        self, carrier: list[tuple[str, bytes | None]], key: str, value: str
    ) -> None:
        carrier.append((key, value.encode()))


_GETTER: Final = _HeaderGetter()
_SETTER: Final = _HeaderSetter()
_EMPTY: Final = Context()


class Propagation:
    """Reads and writes the context of records.

    Args:
        propagator: None for the global one, whatever it is at the time of a call.
    """

    def __init__(
        self, propagator: TextMapPropagator | None, failures: Failures
    ) -> None:
        self._propagator = propagator
        self._failures = failures

    def extract(self, headers: Headers) -> Context:
        """Return the context of a record, with its baggage; an empty one if none."""
        if not headers:
            return _EMPTY
        try:
            return self._current.extract(headers, context=_EMPTY, getter=_GETTER)
        except Exception:  # noqa: BLE001 (of any propagator)
            self._failures.report("extract a context")
            return _EMPTY

    def inject(self, headers: Headers, context: Context) -> Headers:
        """Return the headers with this context instead of the one that they have."""
        propagator = self._current
        added: list[tuple[str, bytes | None]] = []
        try:
            propagator.inject(added, context=context, setter=_SETTER)
        except Exception:  # noqa: BLE001 (of any propagator)
            self._failures.report("inject a context")
            return headers
        kept = [each for each in headers if each[0] not in propagator.fields]
        return (*kept, *added)

    @property
    def _current(self) -> TextMapPropagator:
        return self._propagator or propagate.get_global_textmap()


def span_context_of(context: Context | None) -> SpanContext | None:
    """Return the span of a context (None: the current one), or None if it has none."""
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def context_of_span(span: SpanContext | None, base: Context | None = None) -> Context:
    """Return a context with this span, or without a span; other values of `base`."""
    recorded = trace.INVALID_SPAN if span is None else trace.NonRecordingSpan(span)
    return trace.set_span_in_context(recorded, _EMPTY if base is None else base)
