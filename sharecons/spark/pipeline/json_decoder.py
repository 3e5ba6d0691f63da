"""Decodes JSON values; each must be one object of the schema.

Python's parser is stricter than Spark's. It accepts duplicate keys, NaN and Infinity;
these are rejected here. Numbers with a fraction are parsed as decimals, so that a
DECIMAL column gets the digits that were sent.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

from sharecons.spark.pipeline.converters import Convert
from sharecons.spark.pipeline.errors import InvalidValueError

__all__ = ["JsonDecoder"]

MAX_NAME_LENGTH: Final = 60
"""Characters of a key to show in a reason."""

_BYTE_ORDER_MARK: Final = "\ufeff"


class JsonDecoder:
    """Decodes values of one schema."""

    def __init__(self, convert: Convert) -> None:
        self._convert = convert
        self._parse = json.JSONDecoder(
            object_pairs_hook=_object, parse_constant=_constant, parse_float=_fraction
        ).decode

    def decode(self, value: bytes) -> Any:
        """Return the row.

        Raises:
            InvalidValueError: the value is not one JSON object of the schema.
        """
        if not value:
            raise InvalidValueError("empty value")
        found = self._parsed(value)
        if type(found) is not dict:
            raise InvalidValueError("not a JSON object")
        return self._convert(found)

    def _parsed(self, value: bytes) -> Any:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            raise InvalidValueError("not UTF-8") from None
        if text.startswith(_BYTE_ORDER_MARK):
            raise InvalidValueError("not JSON: begins with a byte order mark")
        try:
            return self._parse(text)
        except json.JSONDecodeError as error:
            raise InvalidValueError(f"not JSON: {_message(error)}") from None
        except RecursionError:
            raise InvalidValueError("not JSON: nested too deeply") from None
        except ValueError:
            # Python's limit for integers, 4,300 digits.
            raise InvalidValueError("not JSON: a number is too long") from None


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, count in _counted(pairs) if count > 1)
        raise InvalidValueError(f"the key {_shown(twice)} occurs more than once")
    return found


def _counted(pairs: Sequence[tuple[str, Any]]) -> Iterable[tuple[str, int]]:
    return Counter(key for key, _ in pairs).items()


def _shown(key: str) -> str:
    short = key if len(key) <= MAX_NAME_LENGTH else f"{key[:MAX_NAME_LENGTH]}…"
    return short.encode(errors="replace").decode()


def _constant(name: str) -> NoReturn:
    raise InvalidValueError(f"not JSON: {name}")


def _fraction(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InvalidValueError("not JSON: a number is out of range") from None


def _message(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "more after the first value"
    text = error.msg.removesuffix(" at").removesuffix(" starting")
    return text[0].lower() + text[1:]
