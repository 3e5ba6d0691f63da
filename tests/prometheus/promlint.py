"""The rules of `promtool check metrics`, for names, helps and types of metrics.

They are the rules of github.com/prometheus/client_golang, prometheus/testutil/promlint,
of version 1.24.1.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["Described", "problems_of"]

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
    """A metric in an exposition: its name, its type, its help, its labels.

    `series` has the names and values of the labels of each value, if these are known.
    """

    name: str
    kind: str
    help: str
    labels: frozenset[str]
    series: Sequence[frozenset[tuple[str, str]]] = ()


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
    if _has_part(name, kind):
        yield f"metric name should not include type '{kind}'"
    if ":" in name:
        yield "metric names should not contain ':'"
    for each in (name, *metric.labels):
        if re.search("[a-z][A-Z]", each):
            yield "names should be written in 'snake_case' not 'camelCase'"
    if len(set(metric.series)) < len(metric.series):
        yield "metric not unique"


def _has_part(name: str, part: str) -> bool:
    """Return whether a name has this part, except at its beginning."""
    lower = name.lower()
    return f"_{part}_" in lower or lower.endswith(f"_{part}")


def _unit_problems(name: str) -> Iterator[str]:
    for each in ABBREVIATIONS:
        if _has_part(name, each):
            yield f"metric names should not contain abbreviated units ({each})"
    known = [(part, base) for part in name.split("_") if (base := _base_unit(part))]
    for part, base in known[:1]:
        if part != base:
            yield f'use base unit "{base}" instead of "{part}"'


def _base_unit(part: str) -> str | None:
    prefixed = [part.removeprefix(each) for each in PREFIXES if part.startswith(each)]
    return next((UNITS[each] for each in (part, *prefixed) if each in UNITS), None)


def _reserved(metric: Described) -> Iterator[str]:
    reserved = {"_bucket": ("histogram",), "_count": ("histogram", "summary")}
    reserved["_sum"] = reserved["_count"]
    for suffix, kinds in reserved.items():
        if metric.kind not in kinds and metric.name.endswith(suffix):
            kind = " and ".join(f"non-{each}" for each in kinds)
            yield f'{kind} metrics should not have "{suffix}" suffix'
    for label, kind in (("le", "histogram"), ("quantile", "summary")):
        if metric.kind != kind and label in metric.labels:
            yield f'non-{kind} metrics should not have "{label}" label'
