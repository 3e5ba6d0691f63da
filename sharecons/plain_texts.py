"""Texts of an application's objects, which can take any time: whether they are plain.

`str` and `repr` of an exception or a value call code of the application, which can
query a database or write megabytes. A text is plain if Python alone makes it, quickly:
then it is made wherever it is needed. Other texts are made once, in a daemon thread,
and kept in their exception until it is raised again.
"""

import builtins
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from sharecons.daemon_threads import start_call
from sharecons.guard import (
    class_attribute,
    exceptions_of,
    guarded,
    instance_attributes,
    raise_exit,
    text_by,
    type_name,
)

__all__ = [
    "HEAD_START",
    "MAX_CHAIN",
    "Texts",
    "has_ended",
    "has_kept_texts",
    "is_plain",
    "is_plain_error",
    "keep_texts",
    "make_quickly",
    "make_texts",
    "no_texts",
    "start_making",
    "texts_of",
]

T = TypeVar("T")

MAX_CHAIN: Final = 20
"""Exceptions whose texts are shown; of a longer chain, only the last one's."""

MAX_TEXT: Final = 64 * 1024
"""Characters of a plain text, and of one that is kept."""

NODE: Final = 64
"""Characters that an object counts for, in addition to its text."""

HEAD_START: Final = 0.01
"""Seconds for which the caller's thread waits for a text: almost all take less."""

MAX_UNFINISHED: Final = 4
"""Threads of calls that have ended without their texts."""

_KEPT: Final = "_sharecons_texts"

_QUICK: Final = frozenset(
    id(vars(kind)[name])
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException)
    for name in ("__str__", "__repr__")
    if name in vars(kind)
)
"""The methods of Python's own exceptions."""

# By identity: a metaclass of the application can define a hash and equality.
_TEXTS: Final = frozenset({id(str), id(bytes)})
_SEQUENCES: Final = frozenset({id(list), id(tuple)})
_SCALARS: Final = frozenset(map(id, (int, float, bool, type(None), memoryview)))

_ARGUMENTS: Final[Any] = BaseException.__dict__["args"]


class Texts(NamedTuple):
    """The text of an exception, and its notes."""

    text: str
    notes: Sequence[str] = ()


def is_plain(value: object) -> bool:
    """Return whether `str` and `repr` of a value are quick, and of Python alone."""
    pending: list[Any] = [value]
    length = 0
    while pending and length <= MAX_TEXT:
        each = pending.pop()
        kind = id(type(each))
        length += NODE
        if kind in _TEXTS:
            length += len(each)
        elif kind in _SEQUENCES and len(each) * NODE <= MAX_TEXT:
            pending += each
        elif kind == id(dict) and len(each) * NODE <= MAX_TEXT:
            pending += each
            pending += each.values()
        elif kind not in _SCALARS:
            return False
    return length <= MAX_TEXT


def is_plain_error(error: BaseException) -> bool:
    """Return whether the texts of an exception are plain, without those in its chain.

    False if other texts are kept, which are then used.
    """
    attributes = instance_attributes(error)
    arguments = _ARGUMENTS.__get__(error)
    return (
        _KEPT not in attributes
        and _is_quick(error, "__str__")
        and _is_quick(error, "__repr__")
        and class_attribute(error, "__notes__") is None
        and is_plain(attributes.get("__notes__"))
        # The exceptions of a group are arguments.
        and is_plain(arguments[:1] if exceptions_of(error) else arguments)
    )


def _is_quick(error: BaseException, name: str) -> bool:
    method = class_attribute(error, name)
    if id(method) in _QUICK:
        return True
    trio = sys.modules.get("trio")  # a timeout of a handler follows from its Cancelled
    return trio is not None and method is vars(trio.Cancelled).get(name)


def has_kept_texts(error: BaseException) -> bool:
    """Return whether texts of an exception are kept."""
    return _KEPT in instance_attributes(error)


def texts_of(error: BaseException) -> Texts:
    """Return the kept texts of an exception; without these, make them."""
    kept = instance_attributes(error).get(_KEPT)
    return make_texts(error) if kept is None else Texts(*kept)


def keep_texts(error: BaseException, texts: Texts) -> None:
    """Keep the texts of an exception, in place of earlier ones."""
    # A tuple, since the application can pickle the exception for another program.
    instance_attributes(error)[_KEPT] = (*texts,)


def make_texts(error: BaseException) -> Texts:
    """Convert an exception to texts."""
    notes: Any = guarded(lambda: getattr(error, "__notes__", None), lambda _: None)
    if type(notes) is list or type(notes) is tuple:
        shown = tuple(text_by(str, note)[:MAX_TEXT] for note in notes)
    else:
        shown = () if notes is None else (text_by(repr, notes)[:MAX_TEXT],)
    return Texts(text_by(str, error)[:MAX_TEXT], shown)


def no_texts(error: BaseException, seconds: float) -> Texts:
    """Return the texts of an exception that were not made in time."""
    return Texts(f"<{type_name(error)}: its text was not made within {seconds:g} s>")


# Threads.

_unfinished: set["Future[Any]"] = set()


def start_making(makers: Iterable[Callable[[], T]]) -> "tuple[Future[None], list[T]]":
    """Start to call functions in a daemon thread, one after the other.

    Return a future, and the results: a list that grows until the future is done.
    """
    made: list[T] = []

    def make() -> None:
        for each in makers:
            made.append(each())  # noqa: PERF401 (others read what is made so far)

    try:
        return start_call(partial(copy_context().run, make)), made
    except RuntimeError:  # no further thread can start
        future: Future[None] = Future()
        future.set_result(None)
        return future, made


def make_quickly(makers: Sequence[Callable[[], T]]) -> list[T]:
    """Return the results of functions that a thread calls within HEAD_START seconds.

    Fewer, if they take longer: where nothing can be awaited, texts are not worth more.
    """
    if len(_unfinished) >= MAX_UNFINISHED:
        return []
    future, made = start_making(makers)
    if not has_ended(future, HEAD_START):
        _unfinished.add(future)
        future.add_done_callback(_unfinished.discard)
    return made[:]


def has_ended(future: "Future[None]", seconds: float = 0.0) -> bool:
    """Wait for a future that `start_making` returned; return whether it is done.

    Raises:
        KeyboardInterrupt, SystemExit: a text has raised it.
    """
    try:
        error = future.exception(seconds)
    except TimeoutError:
        return False
    if error is not None:
        raise_exit(error)
    return True
