"""The pages of records: a topic's, and dead letters."""

from contextlib import aclosing
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse

from sharecons.admin import OffsetSpec, ShareGroupAdmin
from sharecons.config.validation import check_topic
from sharecons.dashboard.rendering import Renderer, number_of
from sharecons.dashboard.shown_bytes import FORMS, show_bytes
from sharecons.dead_letters import (
    DeadLetterRecord,
    DeadLetters,
    parse_filter,
)
from sharecons.dead_letters.filters import split_filters
from sharecons.errors import ConfigurationError, Error
from sharecons.escaping import escape
from sharecons.inspection.peek import Peeked, peek

__all__ = ["RecordPages"]

RECORDS: Final = 20
LETTERS: Final = 50


class RecordPages:
    """Shows records without consuming them.

    Args:
        hides_values: keys, values and headers are not shown to anybody.
    """

    def __init__(
        self, admin: ShareGroupAdmin, renderer: Renderer, *, hides_values: bool
    ) -> None:
        self._admin = admin
        self._renderer = renderer
        self._hides_values = hides_values

    async def records(self, request: Request) -> HTMLResponse:
        """Show records of a topic after an offset, or the newest ones."""
        topic = request.query_params.get("topic", "")
        peeked, problem = None, ""
        if topic:
            try:
                peeked = await self._peek(request, topic)
            except Error as error:
                problem = escape(str(error))
        return self._response(
            request, "records.html", topic=topic, peeked=peeked, problem=problem
        )

    async def letters(self, request: Request) -> HTMLResponse:
        """Show the dead letters of a topic that pass the filters."""
        topic = request.query_params.get("topic", "")
        texts = request.query_params.get("filter", "")
        found: list[DeadLetterRecord] = []
        has_more, problem = False, ""
        if topic:
            try:
                found, has_more = await self._letters(request, topic, texts)
            except Error as error:
                problem = escape(str(error))
        return self._response(
            request,
            "letters.html",
            topic=topic,
            letters=found,
            has_more=has_more,
            problem=problem,
        )

    async def letter(self, request: Request) -> HTMLResponse:
        """Show one dead letter, with its traceback and its origin."""
        topic = request.query_params.get("topic", "")
        letter, problem = None, "there is no dead letter at this offset"
        try:
            partition = number_of(request, "partition")
            offset = number_of(request, "offset")
            if partition is not None and offset is not None:
                letters = DeadLetters.from_admin(self._admin, topic)
                letter = await letters.get(partition, offset)
        except Error as error:
            problem = escape(str(error))
        status = 200 if letter else 404
        return self._response(
            request, "letter.html", status, topic=topic, letter=letter, problem=problem
        )

    async def _peek(self, request: Request, topic: str) -> Peeked:
        check_topic("topic", topic)
        start, partition = number_of(request, "from"), number_of(request, "partition")
        partitions = None if partition is None else [partition]
        if start is None:
            return await peek(
                self._admin,
                topic,
                last=RECORDS,
                partitions=partitions,
                max_records=RECORDS,
            )
        return await peek(
            self._admin,
            topic,
            start=start if start else OffsetSpec.EARLIEST,
            partitions=partitions,
            max_records=RECORDS,
        )

    async def _letters(
        self, request: Request, topic: str, texts: str
    ) -> tuple[list[DeadLetterRecord], bool]:
        """Return dead letters after those shown before, and whether there are more."""
        state = request.query_params.get("redriven", "")
        choices = {"": None, "yes": True, "no": False}
        if state not in choices:
            raise ConfigurationError(f"redriven is yes or no, not {state!r}")
        letters = DeadLetters.from_admin(self._admin, topic)
        after = number_of(request, "after") or 0
        found: list[DeadLetterRecord] = []
        read = letters.read(
            parse_filter(*split_filters(texts)),
            redriven=choices[state],
            fetch_sources=False,
        )
        seen = 0
        async with aclosing(read):
            async for letter in read:
                seen += 1
                if seen <= after:
                    continue
                if len(found) == LETTERS:
                    return found, True
                found.append(letter)
        return found, False

    def _response(
        self, request: Request, name: str, status: int = 200, **values: object
    ) -> HTMLResponse:
        form = request.query_params.get("form", "auto")
        form = form if form in FORMS else "auto"

        def show(data: bytes | memoryview | None, *, whole: bool = False) -> object:
            return show_bytes(data, form, None if whole else 4096)

        return self._renderer.response(
            request,
            name,
            status,
            forms=FORMS,
            form=form,
            show=show,
            hides_values=self._hides_values,
            **values,
        )
