"""OpenTelemetry: spans and metrics of consumers, workers and producers.

Needs `sharecons[otel]`. docs/opentelemetry.md is the guide.

- `instrumentation`: `OpenTelemetry`, the class for applications, and the default.
- `member_observer`: observes what a consumer or a worker receives and processes.
- `settlements`: observes the requests that settle it.
- `send_observer`: observes what a producer or a worker writes.
- `deliveries`: which delivered records are not settled, and the spans they belong to.
- `operations`: starts and ends a span, and measures it.
- `failures`: logs failures of the application's OpenTelemetry.
- `attributes`: the names of attributes, and the attributes of a record.
- `dispositions`: the outcome of an attempt as attributes and as an error.
- `propagation`: the context in the headers of a record.
"""

try:
    import opentelemetry.trace as _trace  # noqa: F401
except ImportError as error:
    raise ImportError(
        "sharecons.otel needs opentelemetry-api: pip install 'sharecons[otel]'"
    ) from error

from sharecons.otel.instrumentation import (
    OpenTelemetry,
    instrument,
    is_configured,
    uninstrument,
)

__all__ = ["OpenTelemetry", "instrument", "is_configured", "uninstrument"]
__dir__ = __all__.copy
