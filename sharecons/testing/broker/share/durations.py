"""Durations in Kafka's settings: ISO 8601 with days and smaller units."""

import re
from datetime import timedelta
from typing import Final

__all__ = ["parse_duration"]

_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def parse_duration(text: str) -> timedelta:
    """Parse a duration, such as `PT1H30M` or `P1DT0.5S`.

    Raises:
        ValueError: the text is not a duration.
    """
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else found.groupdict()
    values = {name: float(parts[name]) for name in _UNITS if parts.get(name)}
    if not values:
        raise ValueError(f"invalid duration: {text!r}")
    duration = timedelta(**values)
    return -duration if parts["sign"] == "-" else duration


_UNITS: Final = ("days", "hours", "minutes", "seconds")
