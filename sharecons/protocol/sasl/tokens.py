"""OAUTHBEARER tokens: which values are tokens, and when one expires."""

import json
import re
from base64 import urlsafe_b64decode
from typing import Final

__all__ = ["TOKEN_RULE", "expiry_of", "is_token"]

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")

TOKEN_RULE: Final = (
    "it must return the token as a str: letters, digits and -._~+/, and = at the end "
    "(RFC 6750)"
)
"""The required result of a token function, for error messages."""


def is_token(value: object) -> bool:
    """Return whether a value is a str with the syntax of a token."""
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def expiry_of(token: str) -> float | None:
    """Return the time in seconds since 1970 at which a JSON Web Token expires.

    None if it has no expiry, or if it is no JSON Web Token (RFC 7519).
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        claims = json.loads(urlsafe_b64decode(padded))
    except (ValueError, RecursionError):
        return None
    expiry = claims.get("exp") if isinstance(claims, dict) else None
    if not isinstance(expiry, int | float) or isinstance(expiry, bool):
        return None
    return expiry if abs(expiry) < 1e15 else None
