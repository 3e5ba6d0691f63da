"""A setting as DescribeConfigs shows it: its value, and all that was behind it."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from sharecons.testing.broker.settings.setting import Setting

__all__ = ["Entry", "Source", "Synonym"]


class Source(enum.IntEnum):
    """Where a value is from, numbered as in DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    GROUP = 8


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    name: str
    value: str | None
    source: Source
    kind: int
    doc: str
    synonyms: Sequence[Synonym]
    """What was set anywhere, the strongest first: the first is what holds."""
    read_only: bool = False
    sensitive: bool = False

    @classmethod
    def of(
        cls, setting: Setting, synonyms: Sequence[Synonym], *, read_only: bool = False
    ) -> "Entry":
        first = synonyms[0] if synonyms else None
        return cls(
            name=setting.name,
            value=first.value if first else setting.default,
            source=first.source if first else Source.DEFAULT,
            kind=setting.kind,
            doc=setting.doc,
            synonyms=synonyms,
            read_only=read_only,
        )

    @classmethod
    def unknown(cls, name: str, synonyms: Sequence[Synonym]) -> "Entry":
        """Show a name that means nothing: its value might be a secret."""
        return cls(
            name=name,
            value=None,
            source=synonyms[0].source,
            kind=0,
            doc="",
            synonyms=synonyms,
            read_only=True,
            sensitive=True,
        )
