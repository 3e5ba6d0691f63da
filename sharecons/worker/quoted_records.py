"""Texts of an application's exceptions for log lines, without keys and values.

A handler that parses a record raises exceptions that quote it: `int(record.value)`, for
example. Log lines must not contain keys and values of records. So the text of an
exception that quotes one, and its traceback, are left out; its type, the line of code
and the position of the record remain. The dead letter has the whole text. A handler can
allow the reason of its own `DeadLetter` or `Reject`.

A deserializer's exception quotes parts of a value, which cannot be recognized. Its text
is always left out.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast, final

from sharecons.error_text import error_text, repr_of, text_of
from sharecons.errors import DeserializationError
from sharecons.guard import (
    cause_of,
    chain_of,
    class_attribute,
    exceptions_of,
    is_a,
    type_name,
)
from sharecons.plain_texts import (
    MAX_CHAIN,
    is_plain,
    is_plain_error,
    make_quickly,
    texts_of,
)
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.outcomes import (
    DeadLetter,
    Reject,
    decision_of,
    logs_reason,
    reason_of,
)

__all__ = ["Quotes", "SafeTexts"]

HIDDEN: Final = "(not logged: the text quotes a record)"

HIDDEN_UNKNOWN: Final = "(not logged: the text of its record was not made in time)"

HIDDEN_REASON: Final = (
    "(not logged: the text quotes a record; pass log_reason=True to allow it)"
)

PREFIX: Final = 32
"""Characters of a key or value that are looked for: texts can be cut behind them."""

MIN_QUOTE: Final = 4
"""Shorter keys and values occur in texts by chance."""

MIN_OBJECT: Final = 8
"""As MIN_QUOTE, for the text of a deserialized object: "None" and "True" are common."""


Contents = Sequence[tuple[Any, Any]]
"""The record and the handler's argument of each item of a call."""


FEW: Final = 64
"""Quotes that are looked for one by one."""


@final
class Quotes:
    """The texts that quote one of these records.

    They are made once, where they are needed if that is quick, see `plain_texts`. A
    batch can fail with as many texts as it has records, so a text is searched in one
    pass, however many quotes there are.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._quotes: set[str] | None = None
        self._by_start: dict[str, dict[int, set[str]]] = {}
        self._has_begun = False
        self.are_due = not all(_is_plain(*each) for each in contents)

    @property
    def are_unknown(self) -> bool:
        """True if they were not made in time."""
        return self._has_begun and self._quotes is None

    def begin(self) -> Callable[[], None]:
        """Return what makes them, in a thread."""
        self.are_due, self._has_begun = False, True
        return self._make

    def _make(self) -> None:
        quotes = {quote for each in self._contents for quote in _quotes(*each)}
        for quote in quotes if len(quotes) > FEW else ():
            by_length = self._by_start.setdefault(quote[:MIN_QUOTE], {})
            by_length.setdefault(len(quote), set()).add(quote)
        self._quotes = quotes
        self._contents = ()

    def are_in(self, text: str) -> bool:
        """Return whether a text contains one of them; True if that is not known."""
        if not self._has_begun:
            if self.are_due:
                make_quickly([self.begin()])
            else:
                self.begin()()
        if self._quotes is None:
            return True
        if not self._by_start:
            return any(quote in text for quote in self._quotes)
        return any(
            text[begin : begin + length] in quotes
            for begin in range(len(text) - MIN_QUOTE + 1)
            for length, quotes in self._by_start.get(
                text[begin : begin + MIN_QUOTE], {}
            ).items()
        )


@final
class SafeTexts:
    """Returns the texts. Records of a batch share an exception, which is read once."""

    def __init__(self) -> None:
        self._last: tuple[BaseException, Call | None, bool] | None = None

    def hides(self, error: BaseException, item: WorkItem) -> bool:
        """Return whether the text and the traceback of an exception are left out."""
        last = self._last
        if last is None or last[0] is not error or last[1] is not item.call:
            is_hidden = _hides(error, _quotes_of(item))
            self._last = last = error, item.call, is_hidden
        return last[2]

    def error(self, error: BaseException, item: WorkItem) -> str:
        """Return the type and the text of what a handler raised for a record."""
        if self.hides(error, item):
            return f"{type_name(error)} {_hidden(item)}"
        return error_text(error)

    def reason(self, reason: str, error: BaseException | None, item: WorkItem) -> str:
        """Return the reason of an outcome; `error` is the exception that it names."""
        if error is None and item.error is None:
            return reason  # not of the application
        if error is not None and is_a(error, DeserializationError):
            part = cast("DeserializationError", error).part
            cause = cause_of(error)
            name = type_name(error if cause is None else cause)
            return f"{part} not deserialized: {name}"
        if error is not None and self.hides(error, item):
            return reason.replace(error_text(error), self.error(error, item))
        if not _quotes_of(item).are_in(reason):
            return reason
        decision = None if item.error is None else decision_of(item.error)
        if decision is None or not is_a(decision, (DeadLetter, Reject)):
            return _hidden(item)
        if reason_of(decision) != reason:
            return _hidden(item)
        return reason if logs_reason(decision) else HIDDEN_REASON

    def end(self) -> None:
        """Forget the last exception, which refers to records."""
        self._last = None


def _quotes_of(item: WorkItem) -> Quotes:
    """Return the quotes of the records that a handler was called with together."""
    if item.call is not None and item.call.texts is not None:
        quotes: Quotes = item.call.texts.quotes
        return quotes
    return Quotes([(item.record, item.argument)])


def _hidden(item: WorkItem) -> str:
    return HIDDEN_UNKNOWN if _quotes_of(item).are_unknown else HIDDEN


def _hides(error: BaseException, quotes: Quotes) -> bool:
    if is_a(error, DeserializationError):
        return True
    # A longer chain counts as quoting.
    chain = chain_of(error, MAX_CHAIN)
    if len(chain) > MAX_CHAIN:
        return True
    return quotes.are_in("\n".join(text for each in chain for text in _shown(each)))


def _shown(error: BaseException) -> Iterator[str]:
    """Return the texts of an exception that a log line can have."""
    text, notes = texts_of(error)
    yield text
    yield from notes
    if is_plain_error(error) and not exceptions_of(error):
        yield repr_of(error)


def _is_plain(record: Any, argument: Any) -> bool:
    return argument is record or (is_plain(argument.key) and is_plain(argument.value))


def _quotes(record: Any, argument: Any) -> Iterator[str]:
    """Return what a text contains that quotes a record: the beginnings of its parts."""
    for part in (record.key, record.value):
        if isinstance(part, bytes | memoryview) and len(part) >= MIN_QUOTE:
            begin = bytes(part[:PREFIX])
            yield repr(begin)[2:-1]
            text = begin.decode(errors="ignore")
            if len(text) >= MIN_QUOTE:
                yield text
                yield repr(text)[1:-1]
    if argument is not record:
        for value in (argument.key, argument.value):
            yield from _object_quotes(value)


def _object_quotes(value: Any) -> Iterator[str]:
    is_same = class_attribute(value, "__str__") is vars(object)["__str__"]
    for text in (repr_of(value), "" if is_same else text_of(value)):
        if len(text) >= MIN_OBJECT:
            yield text[:PREFIX]
