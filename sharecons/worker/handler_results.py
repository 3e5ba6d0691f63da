"""Results of handlers with which a record must not be accepted: their code has not run.

Other results are ignored. A handler can return what its last call has returned, such as
the cursor of a database, although this is an iterator.
"""

import concurrent.futures
import inspect
import itertools
from asyncio import Future
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from sharecons.error_text import error_text
from sharecons.guard import function_name, guarded, type_name
from sharecons.plain_copy import plain_copy

__all__ = ["misused"]

HARMLESS: Final = frozenset({str, int, bool, dict, bytes, float})

COLLECTIONS: Final = (list, tuple, set, frozenset)

LAZY: Final = (map, filter, zip, enumerate, itertools.starmap)
"""Iterators that call functions or other iterators only while they are read."""

FUTURES: Final = (Future, concurrent.futures.Future)


def misused(returned: object) -> Exception | None:
    """Return an error for a result with which the record must not be accepted.

    It is an exception, which must be raised instead; or its code has not run, or its
    outcome is not known. Collections are searched, but not what is in these.
    """
    if type(returned) in HARMLESS:
        return None
    return guarded(
        lambda: _misused(returned),
        lambda error: TypeError(
            f"the handler returned a {type_name(returned)}; inspecting it raised "
            f"{error_text(plain_copy(error))}"
        ),
    )


def _misused(returned: object) -> Exception | None:
    kind = type(returned)
    if _is_exception(returned):
        name = function_name(returned)
        return TypeError(f"the handler returned {name} instead of raising it")
    if _has_not_run(returned):
        _close(returned)
        name = kind.__name__
    elif isinstance(returned, COLLECTIONS):
        pending = _pending(returned)
        if pending is None:
            return None
        name = f"{kind.__name__} of {type(pending).__name__}s"
    else:
        return None
    return TypeError(
        f"the handler returned a {name} instead of awaiting it or iterating over it"
    )


def _pending(returned: Collection[object]) -> object:
    """Return an object of a collection that has not run; None if there is none."""
    # A large collection has few types.
    one_of_each = {type(each): each for each in returned}
    if not any(_can_run(each) for each in one_of_each.values()):
        return None
    found = [each for each in returned if _has_not_run(each)]
    for each in found:
        _close(each)
    return found[0] if found else None


def _has_not_run(value: object) -> bool:
    if isinstance(value, FUTURES):
        return not value.done() or value.cancelled() or value.exception() is not None
    return _can_run(value)


def _can_run(value: object) -> bool:
    return (
        isinstance(value, (concurrent.futures.Future, *LAZY))
        or inspect.isgenerator(value)
        or inspect.isasyncgen(value)
        or inspect.isawaitable(value)
    )


def _close(value: object) -> None:
    """Close a coroutine or generator; others go on, since they can be shared."""
    if inspect.isgenerator(value) or inspect.iscoroutine(value):
        with suppress(Exception):  # code of the application that had begun
            value.close()


def _is_exception(value: object) -> bool:
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, BaseException)
