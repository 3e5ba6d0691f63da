"""SASL credentials: a mechanism, with a password or a source of tokens."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["MECHANISMS", "OAUTHBEARER", "PLAIN", "SCRAM", "Credentials", "TokenSource"]

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)

TokenSource = Callable[[], str | Awaitable[str]]
"""Returns a valid token; called for each authentication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A mechanism of `MECHANISMS`, with user name and password or a token source."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: TokenSource | None = field(default=None, repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    """OAUTHBEARER extensions (KIP-342), which are sent with the token."""
