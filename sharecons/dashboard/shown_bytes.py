"""Keys, values and headers as text, JSON or hexadecimal digits."""

import json
from typing import Final, NamedTuple

from sharecons.escaping import escape

__all__ = ["FORMS", "LIMIT", "ShownBytes", "show_bytes"]

FORMS: Final = ("auto", "text", "json", "hex")
LIMIT: Final = 4096
"""Bytes that are shown of a key or value in a list."""

_ROW: Final = 16


class ShownBytes(NamedTuple):
    """Bytes for people; the text is escaped, except that it has lines.

    Attributes:
        form: "null", "text", "json" or "hex".
        size: bytes of all of it.
        is_cut: the text is of the first bytes only.
    """

    text: str
    form: str
    size: int
    is_cut: bool = False


def show_bytes(
    data: bytes | memoryview | None, form: str = "auto", limit: int | None = LIMIT
) -> ShownBytes:
    """Return bytes in a form; "auto" is JSON or text if they are that, else hex.

    Bytes that are not of the form are shown as text if they are UTF-8, else as hex.
    """
    if data is None:
        return ShownBytes("null", "null", 0)
    whole = bytes(data)
    part = whole if limit is None else whole[:limit]
    is_cut = len(part) < len(whole)
    if form == "hex":
        return ShownBytes(_hex(part), "hex", len(whole), is_cut)
    if form in ("auto", "json") and not is_cut:
        found = _json(part)
        if found is not None:
            return ShownBytes(found, "json", len(whole))
    try:
        # A cut can divide a character.
        text = part.decode("utf-8", "ignore" if is_cut else "strict")
    except UnicodeDecodeError:
        return ShownBytes(_hex(part), "hex", len(whole), is_cut)
    return ShownBytes(_lines(text), "text", len(whole), is_cut)


def _json(data: bytes) -> str | None:
    if data.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return _lines(json.dumps(json.loads(data), indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None


def _lines(text: str) -> str:
    return "\n".join(escape(line) for line in text.split("\n"))


def _hex(data: bytes) -> str:
    rows = (data[start : start + _ROW] for start in range(0, len(data), _ROW))
    return "\n".join(
        f"{number * _ROW:06x}  {row.hex(' '):<{3 * _ROW}} "
        f"{''.join(chr(each) if 32 <= each < 127 else '.' for each in row)}"
        for number, row in enumerate(rows)
    )
