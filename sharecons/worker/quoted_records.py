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

from sharecons.error_text import MAX_CHAIN, error_text, repr_of, text_of
from sharecons.errors import DeserializationError
from sharecons.guard import cause_of, chain_of, is_a, type_name
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.outcomes import (
    DeadLetter,
    Reject,
    decision_of,
    logs_reason,
    reason_of,
)

__all__ = ["SafeTexts"]

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


FEW: Final = 64
"""Quotes that are looked for one by one."""


@final
class _Quotes:
    """The texts that quote one of these records.

    A batch can fail with as many texts as it has records, so a text is searched in one
    pass, however many quotes there are.
    """

    def __init__(self, contents: Contents) -> None:
        self._quotes = {quote for each in contents for quote in _quotes(*each)}
        self._by_start: dict[str, dict[int, set[str]]] = {}
        for quote in self._quotes if len(self._quotes) > FEW else ():
            by_length = self._by_start.setdefault(quote[:MIN_QUOTE], {})
            by_length.setdefault(len(quote), set()).add(quote)

    def are_in(self, text: str) -> bool:
        """Return whether a text contains one of them."""
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
        self._last: tuple[BaseException, bool] | None = None
        self._of_calls: dict[Call, _Quotes] = {}

    def hides(self, error: BaseException, item: WorkItem) -> bool:
        """Return whether the text and the traceback of an exception are left out."""
        if self._last is None or self._last[0] is not error:
            self._last = error, _hides(error, self._quotes_of(item))
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
        if not _Quotes([(item.record, item.argument)]).are_in(reason):
            return reason
        decision = None if item.error is None else decision_of(item.error)
        if decision is None or not is_a(decision, (DeadLetter, Reject)):
            return HIDDEN
        if reason_of(decision) != reason:
            return HIDDEN
        return reason if logs_reason(decision) else HIDDEN_REASON

    def end(self) -> None:
        """Forget the last exceptions and calls, which refer to records."""
        self._last = None
        self._of_calls.clear()

    def _quotes_of(self, item: WorkItem) -> _Quotes:
        """Return the quotes of the records that a handler was called with together."""
        call = item.call
        if call is None or not (call.contents or len(call.items) > 1):
            return _Quotes([(item.record, item.argument)])
        if call not in self._of_calls:
            items = [(each.record, each.argument) for each in call.items]
            self._of_calls[call] = _Quotes(call.contents or items)
        return self._of_calls[call]


def _hides(error: BaseException, quotes: _Quotes) -> bool:
    if is_a(error, DeserializationError):
        return True
    # A longer chain counts as quoting.
    chain = chain_of(error, MAX_CHAIN)
    if len(chain) > MAX_CHAIN:
        return True
    text = "\n".join(text for each in chain for text in (text_of(each), repr_of(each)))
    return quotes.are_in(text)


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
