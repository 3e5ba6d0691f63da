"""The options of a client: one entry for each, in the dataclass of its settings.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class WorkerSettings:
        concurrency: int = option(
            10,
            partial(check_count, minimum=1),
            "calls of handlers that run at a time",
            flag=Flag("--concurrency", "N"),
        )

Constructors check an option by its entry, and the command line, `help` and the docs
show its text. Only its type as an argument occurs once more, in a TypedDict, because
type checkers and editors read the arguments there.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from textwrap import fill
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from sharecons.errors import ConfigurationError

__all__ = ["Flag", "Option", "documented", "option", "options_of", "read_options"]

Check = Callable[[str, Any], Any]
ClassT = TypeVar("ClassT", bound=type)

KEY: Final = "sharecons.option"


@dataclass(frozen=True, slots=True)
class Flag:
    """An option of `sharecons run`.

    Attributes:
        name: with its dashes.
        metavar: its value in the help; None for an option without a value.
        is_repeatable: it can be given several times.
    """

    name: str
    metavar: str | None = None
    is_repeatable: bool = False

    @property
    def dest(self) -> str:
        """The name of its value among the parsed arguments."""
        return self.name.lstrip("-").replace("-", "_")


@dataclass(frozen=True, slots=True)
class Option:
    """The description of an option, without its name and type.

    Attributes:
        check: takes the option's name and a value; returns the value of the settings,
            or raises ConfigurationError.
        text: its meaning; the command line shows the first sentence.
        default: the default, as text.
        flag: the option of `sharecons run`, if it has one.
        kafka_property: its name in Kafka's properties files, if it has one.
    """

    check: Check
    text: str
    default: str
    flag: Flag | None = None
    kafka_property: str | None = None

    @property
    def summary(self) -> str:
        """The first sentence of the text, without a period."""
        return self.text.partition(". ")[0]


def option(
    default: Any,
    check: Check,
    text: str,
    *,
    shown: str | None = None,
    flag: Flag | None = None,
    kafka_property: str | None = None,
) -> Any:
    """Return a field of a dataclass that is an option.

    Args:
        shown: the default as text; by default its repr.
    """
    shown = repr(default) if shown is None else shown
    entry = Option(check, text, shown, flag, kafka_property)
    return field(default=default, metadata={KEY: entry})


def options_of(settings: type) -> dict[str, Option]:
    """Return the options in a dataclass of settings, by name."""
    return {
        each.name: each.metadata[KEY]
        for each in fields(settings)
        if KEY in each.metadata
    }


def read_options(
    owner: str,
    given: Mapping[str, Any],
    *tables: type,
    others: Iterable[str] = (),
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Check the keyword arguments of a call; return the values for each table.

    A name that several tables have belongs to the first one.

    Args:
        owner: the called function, for messages.
        others: names that are not checked here; with any, their values come last.
        reasons: why an argument does not exist, by names that users could know.

    Raises:
        ConfigurationError: an argument is invalid or unknown; for an unknown one the
            message has the nearest name.
    """
    options = [options_of(table) for table in tables]
    found: list[dict[str, Any]] = [{} for _ in tables]
    rest: dict[str, Any] = {}
    for name, value in given.items():
        for table, values in zip(options, found, strict=True):
            if name in table:
                values[name] = table[name].check(name, value)
                break
        else:
            if name not in others:
                known = {name for table in (*options, others) for name in table}
                raise _unknown(owner, name, sorted(known), reasons)
            rest[name] = value
    return [*found, rest] if others else found


def documented(
    *tables: type, types: Any = None, without: Collection[str] = ()
) -> Callable[[ClassT], ClassT]:
    """Add the options of tables to the docstring and the signature of a class.

    Its constructor takes them as `**options`, so `help` would not show them. Without
    tables, the class is the table.

    Args:
        types: a TypedDict with the types of the arguments.
        without: options of the tables that the class does not have.
    """

    def document(owner: ClassT) -> ClassT:
        options: dict[str, Field[Any]] = {}
        for table in tables or (owner,):
            for each in fields(table):
                if KEY in each.metadata and each.name not in without:
                    options.setdefault(each.name, each)
        if owner.__doc__ is not None:  # as with -OO
            text = inspect.cleandoc(owner.__doc__)
            lines = map(_described, options.values())
            owner.__doc__ = "\n".join([text, "", "Options:", *lines])
        cast("Any", owner).__signature__ = _with_options(
            owner, options.values(), getattr(types, "__annotations__", {})
        )
        return owner

    return document


def _described(each: Field[Any]) -> str:
    entry: Option = each.metadata[KEY]
    text = f"{each.name}: {entry.text} (default: {entry.default})."
    return fill(text, 88, initial_indent=" " * 4, subsequent_indent=" " * 8)


def _with_options(
    owner: type, options: Iterable[Field[Any]], types: Mapping[str, Any]
) -> inspect.Signature:
    """Return a class's signature with options in place of `**options`."""
    signature = inspect.signature(owner)
    keyword, other = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
    given = [each for each in signature.parameters.values() if each.kind is not other]
    own = {each.name for each in given}
    given += [
        inspect.Parameter(
            each.name,
            keyword,
            default=_shown(each),
            annotation=types.get(each.name, each.type),
        )
        for each in options
        if each.name not in own
    ]
    return signature.replace(parameters=given)


def _shown(each: Field[Any]) -> object:
    """Return the default for a signature; `...` if its text says more."""
    is_plain = repr(each.default) == each.metadata[KEY].default
    return each.default if is_plain else ...


def _unknown(
    owner: str, name: str, known: Iterable[str], reasons: Mapping[str, str]
) -> ConfigurationError:
    from difflib import get_close_matches  # slow, and rarely needed

    if reason := reasons.get(name):
        return ConfigurationError(f"{owner}: {name} {reason}")
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return ConfigurationError(f"{owner} has no argument {name}{hint}")
