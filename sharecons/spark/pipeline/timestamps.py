"""Parses timestamps from JSON: ISO 8601 text, and numbers whose unit is known.

Results are microseconds since 1970, as Spark stores them: in UTC for a TIMESTAMP, and
without a time zone for a TIMESTAMP_NTZ. Both are within the years 1 to 9999.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.errors import InvalidValueError

__all__ = ["UNITS", "Timestamps", "micros_in_range", "zone_of"]

UNITS: Final[Mapping[str, int]] = {"s": 1_000_000, "ms": 1000, "us": 1}
"""Units of numeric timestamps, in microseconds."""

_TEXT: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r" ?(Z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII | re.IGNORECASE,
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST: Final = (datetime.min - _EPOCH) // _MICROSECOND
_LAST: Final = (datetime.max - _EPOCH) // _MICROSECOND
_WIDE: Final = Context(prec=100, rounding=ROUND_HALF_UP)
_RANGE: Final = "out of range: timestamps end with the year 9999"


def zone_of(name: str) -> tzinfo:
    """Return the time zone with Spark's name for it.

    Raises:
        ConfigurationError: this machine has no time zone of this name.
    """
    if name in ("Z", "UTC"):
        return UTC
    if match := _OFFSET.fullmatch(name):
        return _fixed(match[1], match[2], match[3])
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"spark.sql.session.timeZone is {name!r}, but this machine has no such "
            "time zone; install the package tzdata"
        ) from error


def _fixed(sign: str, hours: str, minutes: str | None) -> tzinfo:
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    try:
        return timezone(-offset if sign == "-" else offset)
    except ValueError:
        raise InvalidValueError("no such time zone") from None


@dataclass(frozen=True, slots=True)
class Timestamps:
    """Parser of timestamps.

    Attributes:
        zone: the time zone for text without one, in a TIMESTAMP.
        unit: the unit of numbers, in microseconds; None if numbers are invalid.
    """

    zone: tzinfo = UTC
    unit: int | None = None

    def instant(self, value: Any, rounds: bool) -> int:
        """Parse a TIMESTAMP: text, or a number of `unit` since 1970."""
        kind = type(value)
        if kind is str:
            local, zone, extra = _parse(value, rounds)
            return micros_in_range(_micros(local, zone or self.zone) + extra)
        if kind is int or kind is Decimal:
            return self._number(value, rounds)
        raise InvalidValueError("not a timestamp")

    def local(self, value: Any, rounds: bool) -> int:
        """Parse a TIMESTAMP_NTZ: text without a time zone."""
        if type(value) is not str:
            raise InvalidValueError("not a timestamp in ISO 8601")
        local, zone, extra = _parse(value, rounds)
        if zone is not None:
            raise InvalidValueError("has a time zone, which TIMESTAMP_NTZ cannot hold")
        return micros_in_range((local - _EPOCH) // _MICROSECOND + extra)

    def _number(self, value: int | Decimal, rounds: bool) -> int:
        if self.unit is None:
            raise InvalidValueError(
                "a number, and its unit is not known (--timestamp-unit)"
            )
        number = Decimal(value)
        if number and number.adjusted() > 18:
            raise InvalidValueError(_RANGE)
        exact = _WIDE.multiply(number, Decimal(self.unit))
        micros = exact.quantize(Decimal(1), context=_WIDE) if exact else Decimal(0)
        if micros != exact and not rounds:
            raise InvalidValueError("more than microseconds")
        return micros_in_range(int(micros))


def _parse(text: str, rounds: bool) -> tuple[datetime, tzinfo | None, int]:
    """Return the local time, the zone, and 1 if the fraction rounds up (else 0)."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise InvalidValueError("not a timestamp in ISO 8601")
    micros, up = _fraction(match[7] or "", rounds)
    year, month, day, hour, minute, second = (int(match[n] or 0) for n in range(1, 7))
    try:
        local = datetime(year, month, day, hour, minute, second, micros)
    except ValueError:
        raise InvalidValueError("no such time") from None
    return local, _zone(match[8]), up


def _fraction(digits: str, rounds: bool) -> tuple[int, int]:
    micros, rest = int(digits[:6].ljust(6, "0")), digits[6:]
    if rest.strip("0") and not rounds:
        raise InvalidValueError("more than microseconds")
    return micros, int(rest >= "5")


def _zone(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    if text in ("Z", "z"):
        return UTC
    return _fixed(text[0], text[1:3], text[3:].lstrip(":"))


def _micros(local: datetime, zone: tzinfo) -> int:
    micros = (local - _EPOCH) // _MICROSECOND
    return micros - (zone.utcoffset(local) or timedelta()) // _MICROSECOND


def micros_in_range(micros: int) -> int:
    """Return the microseconds; raise InvalidValueError out of the years 1 to 9999."""
    if not _FIRST <= micros <= _LAST:
        raise InvalidValueError(_RANGE)
    return micros
