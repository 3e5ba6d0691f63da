"""A setting in a DescribeConfigs response: its value and its synonyms."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from sharecons.testing.broker.settings.setting import Setting

__all__ = ["ConfigSource", "Entry", "Synonym"]


class ConfigSource(enum.IntEnum):
    """The source of a value, numbered as in DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    name: str
    value: str | None
    source: ConfigSource
    kind: int
    doc: str
    synonyms: Sequence[Synonym]
    """All values set, by descending precedence: the first is in effect."""
    read_only: bool = False
    sensitive: bool = False

    @classmethod
    def from_setting(
        cls, setting: Setting, synonyms: Sequence[Synonym], *, read_only: bool = False
    ) -> "Entry":
        first = synonyms[0] if synonyms else None
        return cls(
            name=setting.name,
            value=first.value if first else setting.default,
            source=first.source if first else ConfigSource.DEFAULT,
            kind=setting.kind,
            doc=setting.doc,
            synonyms=synonyms,
            read_only=read_only,
        )

    @classmethod
    def unknown(cls, name: str, synonyms: Sequence[Synonym]) -> "Entry":
        """Return an unknown setting without its value, which might be a secret."""
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
