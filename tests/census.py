"""A census of this process: its objects by class, and the sizes of their containers.

State that grows with the history instead of the present is most often an entry in a
dictionary of a live object: the total memory of a short run does not show it. So each
container of each object of `sharecons` is counted by its class and attribute.
"""

import asyncio
import gc
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias

__all__ = ["Census", "entries_of", "grown", "take_census"]

Census: TypeAlias = Mapping[str, int]
"""Numbers of objects, entries, tasks and descriptors, by name."""

OWN: Final = "sharecons"
OTHERS: Final = ("sharecons.testing", "tests.")
"""Modules that are not counted: the embedded broker keeps its records, and the tests
keep what they have seen."""

CONTAINERS: Final = (dict, list, set, frozenset, deque)
DEPTH: Final = 3
"""How deep containers in containers are counted."""

ALLOWED: Final = 2
"""Growth that is none."""


def take_census() -> Census:
    """Count what this process holds, in a task of its event loop."""
    gc.collect()
    counts: Counter[str] = Counter()
    for thing in gc.get_objects():
        kind = type(thing)
        if _is_counted(kind.__module__):
            counts[f"objects of {_name(kind)}"] += 1
        if _is_own(kind.__module__):
            counts.update(entries_of(thing))
    counts.update(_module_entries())
    counts["tasks"] = len(asyncio.all_tasks())
    counts["descriptors"] = len(os.listdir("/proc/self/fd"))
    return counts


def entries_of(thing: object) -> Counter[str]:
    """Return the entries in all containers of an object, by its class and attribute."""
    counts: Counter[str] = Counter()
    for name, value in _attributes(thing):
        if isinstance(value, CONTAINERS):
            counts[f"entries of {_name(type(thing))}.{name}"] += _size(value)
    return counts


def grown(early: Sequence[Census], late: Sequence[Census]) -> list[str]:
    """Return what is more in every late census than in each early one, most first.

    What is held varies: some settled leases are kept, for example. A number that only
    varies is somewhere as low as before.
    """
    before, after = _extremes(early, max), _extremes(late, min)
    more = {name: count - before[name] for name, count in after.items()}
    return [
        f"{name}: up to {before[name]}, then {after[name]} or more"
        for name in sorted(more, key=lambda name: -more[name])
        if more[name] > ALLOWED
    ]


def _extremes(
    censuses: Sequence[Census], choose: Callable[[Iterable[int]], int]
) -> Counter[str]:
    names = {name for census in censuses for name in census}
    return Counter(
        {name: choose(census.get(name, 0) for census in censuses) for name in names}
    )


def _is_own(module: object) -> bool:
    return (
        isinstance(module, str)
        and module.partition(".")[0] == OWN
        and not module.startswith(OTHERS)
    )


def _is_counted(module: object) -> bool:
    """Return whether objects of a module's classes are counted.

    Objects of built-in types are not: most are in the records of the embedded broker.
    """
    return isinstance(module, str) and (
        _is_own(module) or module.startswith(("asyncio", "anyio", "structlog"))
    )


def _name(kind: type[object]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _attributes(thing: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object; a compiled class lists them itself."""
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        compiled = vars(kind).get("__mypyc_attrs__", ())
        for name in (slots,) if isinstance(slots, str) else (*slots, *compiled):
            if hasattr(thing, name):
                yield name, getattr(thing, name)


def _size(container: Any, depth: int = DEPTH) -> int:
    """Return the number of entries of a container, and of the containers in it."""
    inner = container.values() if isinstance(container, dict) else container
    if depth == 0 or isinstance(container, AbstractSet):
        return len(container)
    return len(container) + sum(
        _size(each, depth - 1) for each in inner if isinstance(each, CONTAINERS)
    )


def _module_entries() -> Counter[str]:
    """Return the entries of the containers and caches of all own modules."""
    counts: Counter[str] = Counter()
    for module, loaded in list(sys.modules.items()):
        if not _is_own(module):
            continue
        for name, value in list(vars(loaded).items()):
            if hasattr(value, "cache_info"):
                counts[f"cached by {module}.{name}"] = value.cache_info().currsize
            elif isinstance(value, CONTAINERS) and not name.startswith("__"):
                counts[f"entries of {module}.{name}"] = _size(value)
    return counts
