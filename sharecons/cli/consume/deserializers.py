"""Keys and values of Kafka's own serializers as text.

`string` replaces bytes that are not UTF-8, as Java's StringDeserializer does; without a
deserializer, the bytes are written as they are.
"""

import math
import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

from sharecons.errors import ConfigurationError
from sharecons.similar_names import did_you_mean

__all__ = ["NAMES", "DeserializeError", "Deserializer", "find_deserializer"]

Deserializer = Callable[[bytes], str]
"""Raises DeserializeError."""

JAVA_PACKAGE: Final = "org.apache.kafka.common.serialization."
JAVA_SUFFIX: Final = "Deserializer"

MIN_PLAIN, MAX_PLAIN = 1e-3, 1e7
"""Java writes numbers within these limits without an exponent."""


class DeserializeError(Exception):
    """Bytes are not what the deserializer expects; the message says why."""


def find_deserializer(name: str) -> Deserializer:
    """Return a deserializer by its name, or by the name of Kafka's Java class.

    Raises:
        ConfigurationError: there is none.
    """
    short = name.removeprefix(JAVA_PACKAGE).removesuffix(JAVA_SUFFIX).lower()
    found = _DESERIALIZERS.get(short)
    if found is None:
        raise ConfigurationError(
            f"unknown deserializer {name!r}; known are {', '.join(NAMES)}, and Java's "
            f"classes of the same names, such as {JAVA_PACKAGE}LongDeserializer"
            f"{did_you_mean(short, NAMES)}"
        )
    return found


def _string(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(name: str, layout: str, write: Callable[..., str]) -> Deserializer:
    size = struct.calcsize(layout)

    def deserialize(data: bytes) -> str:
        if len(data) != size:
            raise DeserializeError(
                f"{name} needs {size} byte{'s' * (size > 1)}, not {len(data)}"
            )
        return write(struct.unpack(layout, data)[0])

    return deserialize


def _boolean(data: bytes) -> str:
    if data not in (b"\0", b"\1"):
        raise DeserializeError("boolean needs one byte that is 0 or 1")
    return "true" if data[0] else "false"


def _uuid(data: bytes) -> str:
    try:
        return str(UUID(data.decode()))
    except ValueError as error:
        raise DeserializeError("uuid needs the text of a UUID") from error


def _double(value: float) -> str:
    return _java_number(repr(value), value)


def _float(value: float) -> str:
    # The shortest text that has the same value in single precision. Nine digits always
    # have it.
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    found = (text for text in texts if _single_precision(text) == value)
    return _java_number(next(found, "nan"), value)


def _single_precision(text: str) -> float:
    try:
        (value,) = struct.unpack(">f", struct.pack(">f", float(text)))
    except OverflowError:
        return math.inf
    return float(value)


def _java_number(text: str, value: float) -> str:
    """Return a number as Java's Double.toString does, from its shortest digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, point = _parse_digits(text)
    if len(digits) == 1:
        # Java's have two digits at least, those next to the value: 4.9E-324.
        digits, point = _parse_digits(f"{value:.1e}")
    if value == 0:
        return f"{sign}0.0"
    if MIN_PLAIN <= abs(value) < MAX_PLAIN:
        padded = digits.ljust(point, "0") if point > 0 else "0" * (1 - point) + digits
        split = max(point, 1)
        return f"{sign}{padded[:split]}.{padded[split:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _parse_digits(text: str) -> tuple[str, int]:
    """Return the digits of a number, and where the point is in them."""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = int(exponent or 0) + len(whole) - (len(whole + fraction) - len(digits))
    return digits.rstrip("0") or "0", point


_DESERIALIZERS: Final[dict[str, Deserializer]] = {
    "string": _string,
    "short": _number("short", ">h", str),
    "integer": _number("integer", ">i", str),
    "long": _number("long", ">q", str),
    "float": _number("float", ">f", _float),
    "double": _number("double", ">d", _double),
    "boolean": _boolean,
    "uuid": _uuid,
}

NAMES: Final = tuple(_DESERIALIZERS)
