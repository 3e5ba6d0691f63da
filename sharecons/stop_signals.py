"""SIGTERM and SIGINT: one signal stops all workers and consumers of the process.

While one of them runs in the main thread, one function receives the signals and passes
them to each of them, whatever its thread and its event loop. Python calls signal
handlers in the main thread only, and only there they can be installed. A second signal
cancels the handlers of workers; if only consumers run, it has its usual effect.

The handlers that were installed before are called as well, and are installed again
after the last of them. They belong to the application, or to a server such as uvicorn.
asyncio passes signals to the callbacks of `loop.add_signal_handler` by the wakeup file
descriptor, which is not replaced here if there is one.
"""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, Final, final

from sharecons.log import get_logger
from sharecons.net.io.event_loop import call_soon_function, in_trio

__all__ = ["SIGNALS", "Listener", "received_signals", "stop_on_signals"]

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

INTERRUPTING: Final = ("asyncio.runners", "trio._core._ki")
"""Modules whose handlers of SIGINT raise KeyboardInterrupt in the main task."""

_log = get_logger(__name__)


def received_signals() -> tuple[signal.Signals, ...]:
    """Return SIGNALS, without SIGINT if the process ignores it.

    It does from its start with `nohup`, and as a background job of a shell script: then
    Ctrl-C is for the job in the foreground.
    """
    ignores = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return SIGNALS[:1] if ignores else SIGNALS


@contextmanager
def stop_on_signals(
    group: str,
    stop: Callable[[], None],
    stop_now: Callable[[], None] | None = None,
) -> Iterator["Listener"]:
    """Call `stop` at the first signal and `stop_now` at the second, in the event loop.

    If the process has received a signal that others are stopping for, the calls follow
    immediately. Without `stop_now` the second signal has its usual effect, unless
    another listener has one. `group` is for the log.
    """
    listener = Listener(group, stop, stop_now)
    _dispatcher.add(listener)
    try:
        yield listener
    finally:
        _dispatcher.remove(listener)


@final
class Listener:
    """One worker or consumer, created in its event loop.

    Attributes:
        received: the signal that called an action last, or None.
        has_second_action: a second signal calls an action.
    """

    def __init__(
        self,
        group: str,
        stop: Callable[[], None],
        stop_now: Callable[[], None] | None,
    ) -> None:
        self.is_in_main_thread = _in_main_thread()
        self.received: signal.Signals | None = None
        self.has_second_action = stop_now is not None
        self._group = group
        self._actions = (stop,) if stop_now is None else (stop, stop_now)
        self._call_soon = call_soon_function()
        self._acted = 0
        self._removed = False

    def notify(self, count: int, last: signal.Signals) -> None:
        """Report that `count` signals were received, and the last of them.

        A signal handler, or any other thread, can call this.
        """
        with suppress(RuntimeError):  # its event loop is closed
            self._call_soon(partial(self._act, count, last))

    def _act(self, count: int, last: signal.Signals) -> None:
        actions = self._actions[self._acted : count]
        if self._removed or not actions:
            return
        self._acted = count
        self.received = last
        _log.info("signal received", signal=last.name, group=self._group)
        for action in actions:
            action()

    def remove(self) -> None:
        """Ignore signals from now on."""
        self._removed = True


@final
class SignalDispatcher:
    """Receives the signals of the process for all listeners.

    The signal handler takes no lock: the main thread could hold it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: tuple[Listener, ...] = ()
        self._previous: dict[int, Any] = {}
        self._handler = self._on_signal  # each access to the method makes an object
        self._wakeup: LoopWakeup | None = None
        self._count = 0
        self._last = signal.SIGTERM

    def add(self, listener: Listener) -> None:
        """Pass signals to this listener."""
        if listener.is_in_main_thread and not self._has_listeners_in_main_thread():
            self._uninstall()  # handlers left by a listener that another thread removed
        with self._lock:
            self._listeners = (*self._listeners, listener)
        if listener.is_in_main_thread and not self._previous:
            self._install()
        if self._count:
            listener.notify(self._count, self._last)

    def remove(self, listener: Listener) -> None:
        """Pass no more signals to it; after the last, restore the signal handlers."""
        listener.remove()
        with self._lock:
            self._listeners = tuple(
                each for each in self._listeners if each is not listener
            )
        if _in_main_thread() and not self._has_listeners_in_main_thread():
            self._uninstall()

    def forget(self) -> None:
        """Restore the signal handlers in a forked process, which has no listeners."""
        self._lock = threading.Lock()
        self._listeners = ()
        self._count = 0
        self._restore()
        if self._wakeup is not None:
            self._wakeup.forget()
            self._wakeup = None

    def _has_listeners_in_main_thread(self) -> bool:
        return any(each.is_in_main_thread for each in self._listeners)

    def _has_usual_effect(self) -> bool:
        """Return whether this signal is a second one that no listener handles."""
        return self._count > 0 and not any(
            each.has_second_action for each in self._listeners
        )

    def _install(self) -> None:
        for number in received_signals():
            previous = signal.getsignal(number)
            if previous is None:
                continue  # installed by C code; Python cannot restore it
            self._previous[number] = previous
            try:
                signal.signal(number, self._handler)
            except ValueError:
                self._previous.clear()
                _log.debug("signals cannot be received in a subinterpreter")
                return
        if self._previous and not in_trio():  # which has a wakeup descriptor
            self._wakeup = LoopWakeup()

    def _uninstall(self) -> None:
        self._restore()
        self._count = 0
        if self._wakeup is not None:
            self._wakeup.close()
            self._wakeup = None

    def _restore(self) -> None:
        for number, previous in self._previous.items():
            # The application could have installed another one meanwhile.
            if signal.getsignal(number) is self._handler:
                signal.signal(number, previous)
        self._previous.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        previous = self._previous.get(number)
        # The last listener can have ended in another thread, if its coroutine was never
        # finished.
        if self._has_usual_effect() or not self._has_listeners_in_main_thread():
            self._uninstall()
            signal.raise_signal(number)
            return
        self._count += 1
        self._last = signal.Signals(number)
        for listener in self._listeners:
            listener.notify(self._count, self._last)
        if callable(previous) and not _interrupts(previous):
            previous(number, frame)


@final
class LoopWakeup:
    """Wakes asyncio's event loop when a signal arrives.

    Python runs signal handlers between two instructions. If a signal arrives just
    before the loop waits for I/O, its handler would run only after this wait. Python
    writes a byte to the wakeup file descriptor immediately. asyncio has one only while
    `loop.add_signal_handler` is in use; uvloop always has one.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        previous = signal.set_wakeup_fd(
            self._sender.fileno(), warn_on_full_buffer=False
        )
        self._is_set = previous == -1
        if not self._is_set:
            signal.set_wakeup_fd(previous)
            with suppress(BlockingIOError):  # signals that arrived in between
                os.write(previous, self._receiver.recv(4096))
            self._close_sockets()
            return
        with suppress(NotImplementedError):  # an event loop without readers
            self._loop.add_reader(self._receiver, self._drain)

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            self._receiver.recv(4096)

    def close(self) -> None:
        """Use no wakeup file descriptor, unless there is another one by now."""
        if self._is_set and not self._loop.is_closed():
            with suppress(NotImplementedError):
                self._loop.remove_reader(self._receiver)
        self.forget()

    def forget(self) -> None:
        """Close without the event loop: a forked process shares it with its parent."""
        if not self._is_set:
            return
        current = signal.set_wakeup_fd(-1)
        if current not in (-1, self._sender.fileno()):
            signal.set_wakeup_fd(current)
        self._close_sockets()

    def _close_sockets(self) -> None:
        self._receiver.close()
        self._sender.close()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupts(handler: Callable[..., Any]) -> bool:
    """Return whether a handler of SIGINT is Python's, or an event loop's.

    These raise KeyboardInterrupt, or cancel the main task.
    """
    if handler is signal.default_int_handler:
        return True
    function = getattr(handler, "func", handler)  # asyncio.Runner's is a partial
    return getattr(function, "__module__", None) in INTERRUPTING


_dispatcher: Final = SignalDispatcher()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_dispatcher.forget)
