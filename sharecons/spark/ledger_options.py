"""Parses the values of `ledger.*` options, which Spark passes as text.

Arguments of fsspec filesystems are booleans, numbers and objects. A value that is one
of these in JSON is converted; all other values stay text.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from sharecons.errors import ConfigurationError

__all__ = ["hide_secrets", "parse_ledger_option"]

_WORDS: Final[Mapping[str, bool]] = {"true": True, "false": False}

# Digits that begin with a zero, or are many, are taken for an account's key: text.
_INTEGER: Final = re.compile(r"-?(0|[1-9]\d{0,17})")
_DECIMAL: Final = re.compile(r"-?(0|[1-9]\d{0,17})\.\d{1,17}")

_SECRET: Final = re.compile(
    r"secret|password|passwd|token|key|credential|connection_string|sas", re.IGNORECASE
)


def parse_ledger_option(name: str, value: str) -> Any:
    """Parse the value of an option.

    Args:
        name: the option's name, for errors.
        value: `true` or `false`, a number, a JSON object, array or quoted string, or
            any other text, which is returned unchanged.

    Raises:
        ConfigurationError: the value begins like JSON but is invalid. The message does
            not contain the value, which can be a secret.
    """
    text = value.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return _json(name, text) if text[:1] in ("{", "[", '"') else value


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        at, reason = 1, "too deep, or a number is too long"
        if isinstance(error, json.JSONDecodeError):
            at, reason = error.colno, error.msg
        # Not `from error`, which contains the whole text.
        raise ConfigurationError(
            f"{name} begins like JSON but is invalid (column {at}: {reason}); write an "
            'object as {"name": "value"}, or a text in double quotes'
        ) from None


def hide_secrets(text: str, options: Mapping[str, Any]) -> str:
    """Return a text without the values of options whose names look like secrets."""
    for secret in _secrets(options):
        text = text.replace(secret, "***")
    return text


def _secrets(options: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            found += _secrets(value)
        elif isinstance(value, str) and value and _SECRET.search(name):
            found.append(value)
    # Longer secrets first: they can contain shorter ones.
    return sorted(found, key=len, reverse=True)
