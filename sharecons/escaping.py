"""Escaping of external text before it is shown: names, records, broker messages.

This text can contain control characters that a terminal executes, characters that
reorder or hide their neighbours, and surrogates that cannot be encoded. `escape` writes
each of them as a Python escape (`\\x1b`, `\\u202e`), `json_text` as a JSON escape.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

__all__ = [
    "Json",
    "decode_utf8",
    "escape",
    "has_surrogates",
    "json_text",
    "to_file_name",
]

Json: TypeAlias = (
    "str | int | float | bool | None | Sequence[Json] | Mapping[str, Json]"
)

INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Letters and marks without a glyph that `str.isprintable` accepts."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def escape(text: str, encoding: str = "utf-8") -> str:
    """Return the text in one line, with invisible and control characters escaped.

    Escapes C0, DEL, C1, bidirectional controls, zero-width characters, separators
    other than the plain space, lone surrogates, and characters that the encoding lacks.
    """
    if not text.isprintable() or INVISIBLE.search(text):
        text = "".join(c if _is_shown(c) else ascii(c)[1:-1] for c in text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def json_text(value: Json, encoding: str = "ascii") -> str:
    """Return JSON in one line, with the characters that `escape` escapes as \\uXXXX.

    Numbers that JSON does not have (NaN, infinities) become null.
    """
    import json  # only for commands that write JSON

    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)
    if text.isprintable() and not INVISIBLE.search(text) and _encodes(text, encoding):
        return text
    return "".join(
        c if _is_shown(c) and _encodes(c, encoding) else _json_escape(c) for c in text
    )


def has_surrogates(text: str) -> bool:
    """Return whether the text contains surrogates, as undecodable arguments do."""
    return _SURROGATE.search(text) is not None


def decode_utf8(text: str) -> str:
    """Return the text of an argument or environment variable that is UTF-8.

    In the locale C without UTF-8 mode, Python decodes these as ASCII, so that other
    characters become surrogates. Text that is no UTF-8 either is returned unchanged.
    """
    if not has_surrogates(text):
        return text
    try:
        return os.fsencode(text).decode()
    except UnicodeError:
        return text


def to_file_name(text: str) -> str:
    """Return the name of a file for `open`, if the locale lacks its characters."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return os.fsdecode(text.encode("utf-8", "surrogateescape"))
    return text


def _is_shown(c: str) -> bool:
    return c.isprintable() and not INVISIBLE.match(c)


def _encodes(text: str, encoding: str) -> bool:
    if encoding == "ascii":
        return text.isascii()
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _json_escape(c: str) -> str:
    code = ord(c)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _finite(value: Json) -> Json:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case str() | None:
            return value
        case Mapping():
            return {key: _finite(each) for key, each in value.items()}
        case Sequence():
            return [_finite(each) for each in value]
    return value
