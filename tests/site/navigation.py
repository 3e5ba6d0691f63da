"""The navigation of the site, as docs/zensical.toml has it."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.site.layout import ROOT

__all__ = ["CONFIG", "Entry", "entries"]

CONFIG = ROOT / "docs" / "zensical.toml"


@dataclass(frozen=True)
class Entry:
    """A page in the navigation: its sections, outermost first, and its title."""

    sections: tuple[str, ...]
    title: str | None
    page: str


@cache
def entries() -> tuple[Entry, ...]:
    """Return the pages of the navigation in order."""
    return tuple(_walk(tomllib.loads(CONFIG.read_text())["project"]["nav"], ()))


def _walk(items: list[Any], sections: tuple[str, ...]) -> Iterator[Entry]:
    for item in items:
        if isinstance(item, str):
            yield Entry(sections, None, item)
            continue
        ((title, value),) = item.items()
        if isinstance(value, str):
            yield Entry(sections, title, value)
        else:
            yield from _walk(value, (*sections, title))
