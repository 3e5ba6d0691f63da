"""The rules of `promtool check metrics`, for names, helps and types of metrics.

They are the rules of github.com/prometheus/client_golang, promlint.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Described", "problems_of"]

TYPES: Final = ("counter", "gauge", "histogram", "summary")
ABBREVIATIONS: Final = frozenset(
    ("s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d")
)
"""Of units."""
UNITS: Final = {
    "amperes": "amperes",
    "bytes": "bytes",
    "celsius": "celsius",
    "grams": "grams",
    "joules": "joules",
    "kelvin": "kelvin",
    "meters": "meters",
    "metres": "metres",
    "moles": "moles",
    "seconds": "seconds",
    "volts": "volts",
    "minutes": "seconds",
    "hours": "seconds",
    "days": "seconds",
    "weeks": "seconds",
    "kelvins": "kelvin",
    "fahrenheit": "celsius",
    "rankine": "celsius",
    "inches": "meters",
    "yards": "meters",
    "miles": "meters",
    "bits": "bytes",
    "calories": "joules",
    "pounds": "grams",
    "ounces": "grams",
}
PREFIXES: Final = (
    *("pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo"),
    *("kibi", "mega", "mibi", "giga", "gibi", "tera", "tebi", "peta", "pebi"),
)


class Described(NamedTuple):
    """A metric in an exposition: its name, its type, its help, its labels."""

    name: str
    kind: str
    help: str
    labels: frozenset[str]


def problems_of(metric: Described) -> list[str]:
    """Return what promtool would report."""
    return [f"{metric.name}: {each}" for each in _problems(metric)]


def _problems(metric: Described) -> Iterator[str]:
    name, kind = metric.name, metric.kind
    if not metric.help:
        yield "no help text"
    yield from _unit_problems(name)
    if kind == "counter" and not name.endswith("_total"):
        yield 'counter metrics should have "_total" suffix'
    if kind != "counter" and name.endswith("_total"):
        yield 'non-counter metrics should not have "_total" suffix'
    yield from _reserved(metric)
    for each in TYPES:
        if f"_{each}_" in name or name.endswith(f"_{each}"):
            yield f'metric name should not include type "{each}"'
    if ":" in name:
        yield "metric names should not contain ':'"
    for each in (name, *metric.labels):
        if re.search("[a-z][A-Z]", each):
            yield "names should be written in 'snake_case' not 'camelCase'"


def _unit_problems(name: str) -> Iterator[str]:
    for part in name.split("_"):
        if part in ABBREVIATIONS:
            yield f"metric names should not contain abbreviated units ({part})"
        for unit, base in UNITS.items():
            prefixed = part in [prefix + unit for prefix in PREFIXES]
            if prefixed or (part == unit and unit != base):
                yield f'use base unit "{base}" instead of "{part}"'


def _reserved(metric: Described) -> Iterator[str]:
    reserved = {"_bucket": ("histogram",), "_count": ("histogram", "summary")}
    reserved["_sum"] = reserved["_count"]
    for suffix, kinds in reserved.items():
        if metric.kind not in kinds and metric.name.endswith(suffix):
            yield f'non-{kinds[0]} metrics should not have "{suffix}" suffix'
    for label, kind in (("le", "histogram"), ("quantile", "summary")):
        if metric.kind != kind and label in metric.labels:
            yield f'non-{kind} metrics should not have "{label}" label'
