"""The message that taskiq's receiver receives, and its `ack`."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from taskiq import AckableMessage

from sharecons.taskiq.held_tasks import HeldTask

__all__ = ["Acknowledgement", "Message", "MessageEvents"]


class MessageEvents(Protocol):
    """Handles what happens to the message of a task: a `TaskSource`."""

    def accept(self, item: HeldTask) -> None: ...

    def on_task_ended(self, item: HeldTask, error: BaseException | None) -> None: ...

    def on_discarded(self, item: HeldTask) -> None: ...

    def drop(self, item: HeldTask) -> None: ...

    def call_soon(self, method: Callable[[HeldTask], None], item: HeldTask) -> None: ...


class Acknowledgement:
    """The `ack` of one message.

    The receiver and the task's context refer to it while they can call it.
    """

    def __init__(self, source: MessageEvents, item: HeldTask) -> None:
        self._source = source
        self._item = item
        self._is_watching = False

    def __call__(self) -> None:
        self._source.accept(self._item)

    def watch_task(self) -> None:
        """Watch for the end of the running task: it handles the message."""
        task = asyncio.current_task()
        if task is not None and not self._is_watching:
            self._is_watching = True
            task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: "asyncio.Task[Any]") -> None:
        error: BaseException | None = None
        if not self._item.is_done:
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._source.on_task_ended(self._item, error)

    def __del__(self) -> None:
        if not self._is_watching:
            self._source.call_soon(self._source.on_discarded, self._item)
        elif not self._item.is_done:
            self._source.call_soon(self._source.drop, self._item)


class Message(AckableMessage):
    """A message that notes which task handles it.

    taskiq's receiver does not report the end of a task that it does not acknowledge,
    and keeps its last message. It reads `ack` in the task that handles the message.
    """

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name == "ack" and isinstance(value, Acknowledgement):
            value.watch_task()
        return value
