"""Durations as Kafka's settings spell them: ISO 8601, by days and less."""

import re
from datetime import timedelta
from typing import Final

__all__ = ["parsed"]

_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def parsed(text: str) -> timedelta:
    """Read a duration, such as `PT1H30M` or `P1DT0.5S`.

    Raises:
        ValueError: it is none.
    """
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else found.groupdict()
    given = {name: float(parts[name]) for name in _UNITS if parts.get(name)}
    if not given:
        raise ValueError(f"no duration: {text!r}")
    duration = timedelta(**given)
    return -duration if parts["sign"] == "-" else duration


_UNITS: Final = ("days", "hours", "minutes", "seconds")
