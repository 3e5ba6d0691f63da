"""Makes the texts of failed calls before the outcomes of their records are decided.

The application can take any time for the texts of an exception and of a deserialized
value, see `plain_texts`. They are made once for each attempt, in a daemon thread; other
records go on meanwhile. If a call is cancelled, nothing is decided: its records are
released, as if its handler ran.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, final

import anyio

from sharecons.error_text import errors_in_text
from sharecons.errors import DeserializationError
from sharecons.guard import chain_of, is_a
from sharecons.net.io.event_loop import call_soon_function
from sharecons.plain_texts import (
    HEAD_START,
    MAX_CHAIN,
    has_ended,
    has_kept_texts,
    is_plain_error,
    keep_texts,
    make_texts,
    no_texts,
    start_making,
)
from sharecons.worker.machine.item import Call
from sharecons.worker.outcomes import decision_of
from sharecons.worker.quoted_records import Quotes

__all__ = ["FailureTexts", "has_texts", "have_failed"]

LIMIT: Final = 5.0
"""Seconds for the texts of a call, which keeps its slot meanwhile."""

THREADS: Final = 4
"""Calls whose texts are made at the same time; further ones wait."""

Errors = Sequence[Exception | None]


def have_failed(errors: Errors) -> bool:
    """Return whether a record of a call has an error."""
    for error in errors:  # noqa: SIM110 (any() takes three times as long)
        if error is not None:
            return True
    return False


def has_texts(error: BaseException) -> bool:
    """Return whether the texts that `error_text` reads are made, or plain."""
    return all(
        is_plain_error(each) or has_kept_texts(each) for each in errors_in_text(error)
    )


@final
class CallTexts:
    """The texts of a call that has failed.

    Attributes:
        quotes: the texts that quote its records; they outlive the call.
    """

    def __init__(self, call: Call) -> None:
        self.quotes = Quotes([(item.record, item.argument) for item in call.items])
        self._seen: dict[int, BaseException] = {}

    def take_new(self, errors: Errors) -> list[BaseException]:
        """Return the exceptions whose texts must be made, the first time only."""
        new: list[BaseException] = []
        different = {id(error): error for error in errors if error is not None}
        for error in different.values():
            chain = [*chain_of(error, MAX_CHAIN), *errors_in_text(error)]
            for each in (*chain, decision_of(error)):
                if each is not None and id(each) not in self._seen:
                    self._seen[id(each)] = each
                    if not is_plain_error(each):
                        new.append(each)
        return new

    def return_new(self, errors: list[BaseException]) -> None:
        """Take exceptions back whose texts were not made."""
        for error in errors:
            del self._seen[id(error)]

    def end(self) -> None:
        """Forget the exceptions, whose tracebacks refer to the call."""
        self._seen.clear()


@final
class FailureTexts:
    """Makes the texts, for one worker."""

    def __init__(self) -> None:
        self._free = anyio.Semaphore(THREADS)
        self._abandoned: set[Future[None]] = set()

    async def make(self, call: Call, errors: Errors) -> None:
        """Make the texts of exceptions, and of the records that they can quote.

        Afterwards each exception has texts, or one that says that there is none. If
        this is cancelled, no text is kept.
        """
        if call.texts is None:
            call.texts = CallTexts(call)
        new = call.texts.take_new(errors)
        makers: list[Callable[[], Any]] = [partial(make_texts, each) for each in new]
        if call.texts.quotes.are_due and _can_quote(errors):
            makers.append(call.texts.quotes.begin())
        if not makers:
            return
        try:
            made = await self._make(makers)
        except BaseException:
            call.texts.return_new(new)
            raise
        for index, error in enumerate(new):
            is_made = index < len(made)
            keep_texts(error, made[index] if is_made else no_texts(error, LIMIT))

    async def _make(self, makers: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return what is made in time: nothing while no thread ends."""
        if len(self._abandoned) >= THREADS:
            return []
        made: list[Any] = []
        with anyio.move_on_after(LIMIT):
            await self._free.acquire()
            future, made = start_making(makers)
            try:
                await self._wait(future)
            finally:
                if not future.done():
                    self._abandoned.add(future)
        return made[:]

    async def _wait(self, future: "Future[None]") -> None:
        ended = anyio.Event()
        schedule = call_soon_function()

        def on_end(done: "Future[None]") -> None:
            self._abandoned.discard(done)
            self._free.release()
            ended.set()

        def on_done(done: "Future[None]") -> None:  # in the thread
            with suppress(RuntimeError):  # the event loop has ended before
                schedule(partial(on_end, done))

        future.add_done_callback(on_done)
        if not has_ended(future, HEAD_START):
            await ended.wait()
            has_ended(future)


def _can_quote(errors: Errors) -> bool:
    """Return whether texts are compared with records: of deserializers, none is."""
    return any(
        error is not None and not is_a(error, DeserializationError) for error in errors
    )
