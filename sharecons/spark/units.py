"""Parses durations and sizes in Spark's notation."""

import re
from collections.abc import Mapping
from typing import Final

from sharecons.errors import ConfigurationError

__all__ = ["parse_duration", "parse_size"]

_UNITS: Final[Mapping[str, float]] = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


def parse_duration(name: str, value: str) -> float:
    """Parse a duration in Spark's notation (`15m`, `500ms`, `2h`) to seconds.

    Raises:
        ConfigurationError: it is no duration.
    """
    match = re.fullmatch(r"([0-9]{1,19})\s*([a-z]*)", value.strip().lower())
    if match is None or (match[2] or "ms") not in _UNITS:
        raise ConfigurationError(
            f"{name} must be a number with a unit (500ms, 30s, 15m, 2h), not {value!r}"
        )
    # Spark's default unit is milliseconds.
    return int(match[1]) * _UNITS[match[2] or "ms"]


def parse_size(name: str, value: str) -> int:
    """Parse a size in Spark's notation (`512k`, `10m`, `1g`) to bytes.

    Raises:
        ConfigurationError: it is no size, or zero.
    """
    match = re.fullmatch(r"([0-9]{1,19})\s*([kmgt]?)b?", value.strip().lower())
    if match is None or not int(match[1]):
        raise ConfigurationError(
            f"{name} must be a size above 0 (512k, 10m, 1g), not {value!r}"
        )
    return int(match[1]) << 10 * " kmgt".index(match[2] or " ")
