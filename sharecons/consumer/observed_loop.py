"""A loop whose records are observed; only consumers with instrumentation have it."""

from collections.abc import AsyncIterator
from typing import Any, Self

from sharecons.batch import Batch
from sharecons.instrumentation import MemberObserver

__all__ = ["ObservedLoop"]


class ObservedLoop:
    """Wraps a loop over records or batches.

    Deleting it deletes the loop, which releases the current record.
    """

    def __init__(self, loop: AsyncIterator[Any], observer: MemberObserver) -> None:
        self._loop = loop
        self._observer = observer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            with self._observer.receiving() as receive:
                received = await anext(self._loop)
                receive.is_batch = isinstance(received, Batch)
                receive.records = received if receive.is_batch else (received,)
        except BaseException:
            del self  # or the traceback would keep the loop alive
            raise
        return received
