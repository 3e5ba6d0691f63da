"""Characters that commands never write to a terminal."""

import unicodedata

__all__ = ["unsafe_characters"]

INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"


def unsafe_characters(text):
    """Return the control characters and invisible characters in a text."""
    return {
        c
        for c in text
        if c != "\n"
        and (
            unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
            or c in INVISIBLE
            or "\ufe00" <= c <= "\ufe0f"
        )
    }
