"""Numbers and times as people read and type them; the filters of the templates."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sharecons.dashboard.history import Rates
from sharecons.errors import ConfigurationError
from sharecons.escaping import escape
from sharecons.inspection.diagnosis.formats import format_duration

__all__ = ["FILTERS", "parse_number"]

UNKNOWN: Final = "?"
MAX_DIGITS: Final = 19


def count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def rate(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}/s" if value >= 10 or value == 0 else f"{value:.1f}/s"


def duration(value: float | None) -> str:
    return UNKNOWN if value is None else format_duration(value)


def drain(rates: Rates | None, lag: int | None) -> str:
    """Return when a lag will be 0."""
    if lag == 0:
        return "nothing waits"
    if rates is None or lag is None:
        return UNKNOWN
    if rates.drained_in is None:
        return "not at this rate"
    return format_duration(rates.drained_in)


def clock(at: float | None) -> str:
    if at is None:
        return "never"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def age(value: float | None) -> str:
    """Return the age of the oldest unsettled record; 0 if there is none."""
    return "none" if value == 0 else duration(value)


def seconds(value: float | None) -> str:
    """Return a duration that can be far below a second."""
    if value is None:
        return UNKNOWN
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def stamp(milliseconds: int) -> str:
    """Return a timestamp of a record, which can be any number."""
    if milliseconds == -1:
        return "no timestamp"
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return time.strftime("%Y-%m-%d %H:%M:%S.") + f"{milliseconds % 1000:03d} UTC"


def lines(text: str) -> str:
    return "\n".join(escape(line) for line in text.split("\n"))


def first_line(text: str) -> str:
    return escape(text.split("\n", 1)[0])


def parse_number(name: str, text: str) -> int:
    """Return a whole number that a person typed.

    Raises:
        ConfigurationError: it is none, or larger than any offset.
    """
    number = text.strip()
    if number.isascii() and number.isdecimal() and len(number) < MAX_DIGITS:
        return int(number)
    raise ConfigurationError(f"{name} is a whole number, not {text!r}")


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "count": count,
    "rate": rate,
    "duration": duration,
    "drain": drain,
    "clock": clock,
    "age": age,
    "shown": escape,
    "stamp": stamp,
    "seconds": seconds,
    "lines": lines,
    "first_line": first_line,
}
