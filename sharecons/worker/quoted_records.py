"""Texts of an application's exceptions for log lines, without keys and values.

A handler that parses a record raises exceptions that quote it: `int(record.value)`, for
example. Log lines must not contain keys and values of records. So the text of an
exception that quotes one, and its traceback, are left out; its type, the line of code
and the position of the record remain. The dead letter has the whole text. A handler can
allow the reason of its own `DeadLetter` or `Reject`.

A deserializer's exception quotes parts of a value, which cannot be recognized. Its text
is always left out.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast, final

from sharecons.errors import DeserializationError
from sharecons.guard import cause_of, chain_of, is_a, type_name
from sharecons.worker.error_text import MAX_CHAIN, error_text, repr_of, text_of
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.outcomes import (
    DeadLetter,
    Reject,
    decision_of,
    logs_reason,
    reason_of,
)

__all__ = ["SafeTexts", "quotes_record"]

HIDDEN: Final = "(not logged: the text quotes a record)"

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


def quotes_record(text: str, contents: Contents) -> bool:
    """Return whether a text contains the key or value of one of these records."""
    return any(quote in text for each in contents for quote in _quotes(*each))


@final
class SafeTexts:
    """Returns the texts. Records of a batch share an exception, which is read once."""

    def __init__(self) -> None:
        self._last: tuple[BaseException, bool] | None = None

    def hides(self, error: BaseException, item: WorkItem) -> bool:
        """Return whether the text and the traceback of an exception are left out."""
        if self._last is None or self._last[0] is not error:
            self._last = error, _hides(error, _contents_of(item))
        return self._last[1]

    def error(self, error: BaseException, item: WorkItem) -> str:
        """Return the type and the text of what a handler raised for a record."""
        if self.hides(error, item):
            return f"{type_name(error)} {HIDDEN}"
        return error_text(error)

    def reason(self, reason: str, error: BaseException | None, item: WorkItem) -> str:
        """Return the reason of an outcome; `error` is the exception that it names."""
        if error is not None and is_a(error, DeserializationError):
            part = cast("DeserializationError", error).part
            cause = cause_of(error)
            name = type_name(error if cause is None else cause)
            return f"{part} not deserialized: {name}"
        if error is not None and self.hides(error, item):
            return reason.replace(error_text(error), self.error(error, item))
        if not quotes_record(reason, [(item.record, item.argument)]):
            return reason
        decision = None if item.error is None else decision_of(item.error)
        if decision is None or not is_a(decision, (DeadLetter, Reject)):
            return HIDDEN
        if reason_of(decision) != reason:
            return HIDDEN
        return reason if logs_reason(decision) else HIDDEN_REASON

    def end(self) -> None:
        """Forget the last exception, whose traceback refers to records."""
        self._last = None


def _contents_of(item: WorkItem) -> Contents:
    """Return what the last call of a record was called with."""
    call = item.call
    if call is not None and call.contents:
        return call.contents
    items = call.items if call is not None and call.items else [item]
    return [(each.record, each.argument) for each in items]


def _hides(error: BaseException, contents: Contents) -> bool:
    if is_a(error, DeserializationError):
        return True
    # A longer chain counts as quoting.
    chain = chain_of(error, MAX_CHAIN)
    if len(chain) > MAX_CHAIN:
        return True
    text = "\n".join(text for each in chain for text in (text_of(each), repr_of(each)))
    return quotes_record(text, contents)


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
    for text in (text_of(value), repr_of(value)):
        if len(text) >= MIN_OBJECT:
            yield text[:PREFIX]
