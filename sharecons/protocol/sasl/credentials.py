"""Who a client says it is, as SASL has it: a mechanism, and what that asks for."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["MECHANISMS", "OAUTHBEARER", "PLAIN", "SCRAM", "Credentials", "TokenSource"]

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)

TokenSource = Callable[[], str | Awaitable[str]]
"""Gives a token that is good now; asked again for each authentication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A mechanism of `MECHANISMS`, and a name and a password, or a source of tokens."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: TokenSource | None = field(default=None, repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of OAUTHBEARER (KIP-342): what goes to the broker beside the token."""
