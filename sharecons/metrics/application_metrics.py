"""Metrics of the application, which are pushed beside the consumer's own (KIP-1076)."""

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, final

from sharecons.errors import ConfigurationError
from sharecons.guard import guarded, text_by
from sharecons.log import get_logger
from sharecons.metrics.catalog import METRICS
from sharecons.metrics.metric import MetricPoint
from sharecons.plain_copy import plain_copy

__all__ = ["ApplicationMetric", "ApplicationMetrics"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,254}")
"""The names of OpenTelemetry's instruments."""

_KINDS: Final = ("counter", "gauge")

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationMetric:
    """A metric of the application, for `register_metric`.

        ApplicationMetric(
            name="com.example.billing.queue.depth", read=queue.qsize, unit="jobs"
        )

    Attributes:
        name: under which it is pushed, unchanged. Brokers select metrics by the
            beginnings of names.
        read: returns the current value. A plain function, called in the event loop once
            per push; it must not block. If it raises or returns no finite number, the
            metric is left out of the push, and the first time a warning is logged.
        kind: "counter" for a total that only grows, else "gauge".
        unit: of the value, "1" for a ratio or a count.
        description: one sentence.
        attributes: labels with fixed values.

    Raises:
        ConfigurationError: a value is invalid.
    """

    name: str
    read: Callable[[], float]
    kind: Literal["counter", "gauge"] = "gauge"
    unit: str = "1"
    description: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"name must be the name of a metric, not {self.name!r}: a letter, then "
                "up to 254 letters, digits, and _ . / -; for example "
                "'com.example.billing.queue.depth'"
            )
        if not callable(self.read) or inspect.iscoroutinefunction(self.read):
            raise ConfigurationError(
                f"read of metric {self.name!r} must be a plain function that returns "
                f"a number, not {self.read!r}"
            )
        if self.kind not in _KINDS:
            raise ConfigurationError(
                f"kind of metric {self.name!r} must be 'counter' or 'gauge', not "
                f"{self.kind!r}"
            )
        if not isinstance(self.attributes, Mapping):
            raise ConfigurationError(
                f"attributes of metric {self.name!r} must be a mapping, not "
                f"{self.attributes!r}; use {{'shard': 'a'}}"
            )
        labels = dict(self.attributes)
        # A copy, as a value that changes later would not be validated.
        object.__setattr__(self, "attributes", labels)
        texts = (self.unit, self.description, *labels, *labels.values())
        if not all(map(_is_text, texts)):
            raise ConfigurationError(
                f"unit, description and attributes of metric {self.name!r} must be "
                "str of valid Unicode; convert other values, as in "
                "attributes={'shard': str(shard)}"
            )


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate, which cannot be encoded
        return False
    return True


@final
class ApplicationMetrics:
    """The metrics that an application has registered with one consumer or worker."""

    def __init__(self) -> None:
        self._metrics: dict[str, ApplicationMetric] = {}
        self._failed: set[str] = set()

    def register(self, metric: ApplicationMetric) -> None:
        """Push this metric from now on, to brokers that want it.

        Raises:
            ConfigurationError: it is no `ApplicationMetric`, or another metric has its
                name.
        """
        if not isinstance(metric, ApplicationMetric):
            raise ConfigurationError(
                f"metric must be an ApplicationMetric, not {metric!r}; use "
                "ApplicationMetric(name='com.example.queue.depth', read=queue.qsize)"
            )
        if metric.name in self._metrics or metric.name in _OWN_NAMES:
            raise ConfigurationError(
                f"there is a metric {metric.name!r} already; choose another name, or "
                "call unregister_metric() before"
            )
        self._metrics[metric.name] = metric

    def unregister(self, name: str) -> None:
        """Push the metric of this name no more; a name that is unknown is ignored."""
        self._metrics.pop(name, None)
        self._failed.discard(name)

    def points(self) -> list[MetricPoint]:
        """Return the current values, in the order of registration."""
        points = []
        for metric in tuple(self._metrics.values()):
            value = self._read(metric)
            if value is not None:
                points.append(
                    MetricPoint(
                        metric.name,
                        metric.kind,
                        metric.unit,
                        metric.description,
                        value,
                        metric.attributes,
                    )
                )
        return points

    def _read(self, metric: ApplicationMetric) -> float | None:
        def fail(error: BaseException) -> None:
            self._log_failure(metric.name, text_by(repr, plain_copy(error)))

        value = guarded(lambda: float(metric.read()), fail)
        if value is None or math.isfinite(value):
            return value
        self._log_failure(metric.name, f"the value is {value}")
        return None

    def _log_failure(self, name: str, reason: str) -> None:
        if name not in self._failed:
            self._failed.add(name)
            _log.warning(
                "a metric of the application cannot be read, and is not pushed",
                metric=name,
                reason=reason,
            )


_OWN_NAMES: Final = frozenset(metric.telemetry_name for metric in METRICS.values())
