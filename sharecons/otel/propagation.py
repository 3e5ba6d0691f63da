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
from sharecons.guard import guarded
from sharecons.otel.failures import Failures

__all__ = ["NO_CONTEXT", "Propagation", "context_of_span", "span_context_of"]


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


class _NameRecorder(Getter[Headers]):
    """Records the names of the headers that a propagator looks up."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.has_read_all = False

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        self.names.add(key)
        return None

    def keys(self, carrier: Headers) -> list[str]:
        self.has_read_all = True
        return []


class _HeaderSetter(Setter[list[tuple[str, bytes | None]]]):
    def set(
        self, carrier: list[tuple[str, bytes | None]], key: str, value: str
    ) -> None:
        carrier.append((key, value.encode()))


_GETTER: Final = _HeaderGetter()
_SETTER: Final = _HeaderSetter()
NO_CONTEXT: Final = Context()
"""The context of a record without one: no span, no baggage."""


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
        self._recorded_propagator: TextMapPropagator | None = None
        self._looked_up: frozenset[str] | None = None

    def extract(self, headers: Headers) -> Context:
        """Return the context of a record, with its baggage; NO_CONTEXT if none."""
        if not headers:
            return NO_CONTEXT

        def read() -> Context:
            propagator = self._current
            if not self._can_have_context(propagator, headers):
                return NO_CONTEXT
            return propagator.extract(headers, context=NO_CONTEXT, getter=_GETTER)

        def fail(_: BaseException) -> Context:
            self._failures.report("extract a context")
            return NO_CONTEXT

        return guarded(read, fail)

    def inject(self, headers: Headers, context: Context) -> Headers:
        """Return the headers with this context instead of their own."""

        def write() -> Headers:
            propagator = self._current
            added: list[tuple[str, bytes | None]] = []
            propagator.inject(added, context=context, setter=_SETTER)
            replaced = propagator.fields
            return (*(each for each in headers if each[0] not in replaced), *added)

        def fail(_: BaseException) -> Headers:
            self._failures.report("inject a context")
            return headers

        return guarded(write, fail)

    def _can_have_context(
        self, propagator: TextMapPropagator, headers: Headers
    ) -> bool:
        """Return whether a propagator looks at a header that a record has."""
        if propagator is not self._recorded_propagator:
            self._looked_up = _looked_up_by(propagator)
            self._recorded_propagator = propagator
        names = self._looked_up
        return names is None or any(name in names for name, _ in headers)

    @property
    def _current(self) -> TextMapPropagator:
        return self._propagator or propagate.get_global_textmap()


def span_context_of(context: Context | None) -> SpanContext | None:
    """Return the span of a context (None: the current one), or None if it has none."""
    if context is NO_CONTEXT:
        return None
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def context_of_span(span: SpanContext | None, base: Context | None = None) -> Context:
    """Return a context with this span, or without a span; other values of `base`."""
    if span is None and base is None:
        return NO_CONTEXT
    recorded = trace.INVALID_SPAN if span is None else trace.NonRecordingSpan(span)
    return trace.set_span_in_context(recorded, NO_CONTEXT if base is None else base)


def _looked_up_by(propagator: TextMapPropagator) -> frozenset[str] | None:
    """Return the headers of which a context needs at least one; None if any can matter.

    `fields` of a propagator are not enough: they are the headers that it writes, and
    B3's for several headers reads a single one as well.
    """
    recorder = _NameRecorder()

    def look_up() -> frozenset[str] | None:
        propagator.extract((), context=NO_CONTEXT, getter=recorder)
        return None if recorder.has_read_all else frozenset(recorder.names)

    return guarded(look_up, lambda _: None)  # `extract` reports what it raises
