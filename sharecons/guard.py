"""Calls code of the application, whose exceptions must not end the library.

Whatever an application supplies can raise anything: a callback, the text of an
exception, the name of its type, a filter of its logging. A plain function awaits
nothing, so a CancelledError that it raises is a failure of its own. Only
KeyboardInterrupt and SystemExit, which end the program, are raised again.

The other functions read an exception without calling code of the application.
"""

from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar, cast

__all__ = [
    "EXITS",
    "cause_of",
    "chain_of",
    "class_attribute",
    "context_of",
    "exceptions_of",
    "flattened",
    "full_type_name",
    "function_name",
    "guarded",
    "instance_attributes",
    "is_a",
    "module_name",
    "qualified_type_name",
    "raise_error",
    "raise_exit",
    "raw_traceback",
    "text_by",
    "type_name",
]

T = TypeVar("T")
U = TypeVar("U")

EXITS: Final = (KeyboardInterrupt, SystemExit)

# A subclass, or its metaclass, can define attributes of these names that raise.
_NAME: Final[Any] = type.__dict__["__name__"]
_QUALIFIED_NAME: Final[Any] = type.__dict__["__qualname__"]
_MODULE: Final[Any] = type.__dict__["__module__"]
_ORDER: Final[Any] = type.__dict__["__mro__"]
_CLASS_ATTRIBUTES: Final[Any] = type.__dict__["__dict__"]
_ATTRIBUTES: Final[Any] = BaseException.__dict__["__dict__"]
_CAUSE: Final[Any] = BaseException.__dict__["__cause__"]
_CONTEXT: Final[Any] = BaseException.__dict__["__context__"]
_TRACEBACK: Final[Any] = BaseException.__dict__["__traceback__"]
_IS_SUBCLASS: Final[Any] = type.__subclasscheck__
_EXCEPTIONS: Final[Any] = BaseExceptionGroup.__dict__["exceptions"]


def guarded(call: Callable[[], T], otherwise: Callable[[BaseException], U]) -> T | U:
    """Return what a plain function returns; if it raises, `otherwise(exception)`."""
    try:
        return call()
    except BaseException as error:  # noqa: BLE001 (any of the application's)
        raise_exit(error)
        return otherwise(error)


def text_by(convert: Callable[[Any], str], value: object) -> str:
    """Return `str(value)` or `repr(value)`, or a text that says what this raised."""
    return guarded(
        lambda: str.__str__(convert(value)),  # not of a subclass
        lambda error: f"<{type_name(value)}: its text raised {type_name(error)}>",
    )


def raise_exit(error: BaseException) -> None:
    """Raise the KeyboardInterrupt or SystemExit that an exception is, or contains."""
    for each in flattened(error):
        if is_a(each, EXITS):
            raise each


def raise_error(error: BaseException | None) -> None:
    """Raise an exception, if there is one, whose traceback does not refer to itself.

    The frame of a function that raises its own local variable would, until the garbage
    collector runs. Pass an expression, not a variable.
    """
    try:
        if error is not None:
            raise error
    finally:
        del error


def is_a(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Return whether a value is an instance, without calling code of its class.

    `isinstance` can read `__class__`. For a class with `ABCMeta`, such as trio's
    Cancelled, `issubclass` hashes the other class, by its metaclass.
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    return any(_IS_SUBCLASS(kind, type(value)) for kind in kinds)


def type_name(value: object) -> str:
    """Return the name of the type of a value."""
    name: str = _NAME.__get__(type(value))
    return name


def qualified_type_name(value: object) -> str:
    """Return the name of the type of a value, with the classes that it is within."""
    name: str = _QUALIFIED_NAME.__get__(type(value))
    return name


def function_name(function: object) -> str:
    """Return the qualified name of a function; of another object, of its class."""
    while is_a(function, partial):
        function = cast("partial[Any]", function).func
    name = guarded(lambda: getattr(function, "__qualname__", None), lambda _: None)
    return name if type(name) is str else qualified_type_name(function)


def module_name(value: object) -> str | None:
    """Return the name of the module of the type of a value; None if it has none."""
    module = _MODULE.__get__(type(value))
    return module if type(module) is str else None


def full_type_name(value: object) -> str:
    """Return the qualified name of the type of a value, with its module."""
    module = module_name(value)
    name = qualified_type_name(value)
    return name if module is None else f"{module}.{name}"


def exceptions_of(error: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions of an exception group; none of another exception."""
    if not is_a(error, BaseExceptionGroup):
        return ()
    exceptions: tuple[BaseException, ...] = _EXCEPTIONS.__get__(error)
    return exceptions


def cause_of(error: BaseException) -> BaseException | None:
    """Return the exception that `raise ... from` has set."""
    cause: BaseException | None = _CAUSE.__get__(error)
    return cause


def context_of(error: BaseException) -> BaseException | None:
    """Return the exception that was being handled when this one was raised."""
    context: BaseException | None = _CONTEXT.__get__(error)
    return context


def class_attribute(value: object, name: str) -> object:
    """Return what the class of a value, or a base class, defines; None for nothing."""
    for kind in _ORDER.__get__(type(value)):
        attributes = _CLASS_ATTRIBUTES.__get__(kind)
        if name in attributes:
            found: object = attributes[name]
            return found
    return None


def instance_attributes(error: BaseException) -> dict[str, Any]:
    """Return the attributes of an exception, to read and to change."""
    attributes: dict[str, Any] = _ATTRIBUTES.__get__(error)
    return attributes


def raw_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception."""
    traceback: TracebackType | None = _TRACEBACK.__get__(error)
    return traceback


def chain_of(error: BaseException, limit: int) -> list[BaseException]:
    """Return an exception, its causes, contexts and contained exceptions.

    If there are more than `limit`, the result has one more than that.
    """
    found: dict[int, BaseException] = {}
    pending: list[BaseException | None] = [error]
    while pending and len(found) <= limit:
        each = pending.pop()
        if each is not None and id(each) not in found:
            found[id(each)] = each
            pending += [cause_of(each), context_of(each)]
            pending += exceptions_of(each)
    return list(found.values())


def flattened(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those in it, without recursion: groups can be deep."""
    pending = [error]
    while pending:
        each = pending.pop()
        yield each
        pending += reversed(exceptions_of(each))
