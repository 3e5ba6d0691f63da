"""Signals reach all workers and consumers, and the application's own handlers."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import anyio
import pytest
import uvicorn
from anyio import to_thread

from sharecons.stop_signals import SIGNALS, stop_on_signals
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals"),
]

LOOPS = {
    "asyncio": ("asyncio", {}),
    "uvloop": ("asyncio", {"use_uvloop": True}),
    "trio": ("trio", {}),
}
on_asyncio = pytest.mark.parametrize(
    "anyio_backend", [LOOPS["asyncio"], LOOPS["uvloop"]], ids=["asyncio", "uvloop"]
)


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return LOOPS[request.param]


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """Restore the signal handlers of pytest."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Stops:
    """Counts the calls that a worker receives."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.threads: set[int] = set()

    def listening(self) -> Any:
        return stop_on_signals("billing", partial(self._call, "stop"), self._stop_now)

    def _stop_now(self) -> None:
        self._call("stop_now")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        self.threads.add(threading.get_ident())


def send(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


def wakeup_descriptor() -> int:
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor)
    return descriptor


async def test_signal_stops_all_workers_and_the_second_one_cancels_them() -> None:
    first, second = Stops(), Stops()
    with first.listening(), second.listening():
        send()
        await until(lambda: first.calls and second.calls)
        assert [["stop"], ["stop"]] == [first.calls, second.calls]
        send(signal.SIGINT)
        await until(lambda: len(first.calls) == len(second.calls) == 2)
        send()
        await anyio.lowlevel.checkpoint()

    assert ["stop", "stop_now"] == first.calls == second.calls


async def test_signals_reach_the_other_worker_after_one_has_ended() -> None:
    first, second = Stops(), Stops()
    with first.listening():
        with second.listening():
            send()
            await until(lambda: first.calls and second.calls)
        send()
        await until(lambda: len(first.calls) == 2)

    assert ["stop"] == second.calls


async def test_worker_that_starts_while_others_stop_is_stopped() -> None:
    first, second = Stops(), Stops()
    with first.listening():
        send()
        await until(lambda: bool(first.calls))
        with second.listening():
            await until(lambda: bool(second.calls))
    third = Stops()
    with third.listening():
        for _ in range(3):
            await anyio.lowlevel.checkpoint()

    assert ["stop"] == second.calls
    assert [] == third.calls


async def test_worker_in_a_thread_is_stopped_while_one_runs_in_the_main_thread() -> (
    None
):
    first, second = Stops(), Stops()
    started = threading.Event()

    async def wait_until_stopped() -> None:
        with second.listening():
            started.set()
            await until(lambda: bool(second.calls))

    async with anyio.create_task_group() as tasks:
        with first.listening():
            tasks.start_soon(to_thread.run_sync, partial(anyio.run, wait_until_stopped))
            await until(started.is_set)
            send()
            await until(lambda: first.calls and second.calls)

    assert {threading.get_ident()} == first.threads
    assert threading.get_ident() not in second.threads


@pytest.mark.parametrize("number", SIGNALS)
async def test_handler_of_the_application_is_called_and_restored(
    number: signal.Signals,
) -> None:
    received: list[int] = []

    def handle(number: int, frame: object) -> None:
        received.append(number)

    signal.signal(number, handle)
    stops = Stops()
    with stops.listening():
        send(number)
        await until(lambda: bool(stops.calls))
        assert [number] == received

    assert handle is signal.getsignal(number)


async def test_signal_after_the_end_in_another_thread_reaches_the_application() -> None:
    """The garbage collector closes an unfinished coroutine in any thread."""
    received: list[int] = []

    def handle(number: int, frame: object) -> None:
        received.append(number)

    signal.signal(signal.SIGTERM, handle)
    stops = Stops()
    descriptor = wakeup_descriptor()
    listening = stops.listening()
    listening.__enter__()
    await to_thread.run_sync(listening.__exit__, None, None, None)
    send()
    await until(lambda: bool(received))

    assert [signal.SIGTERM] == received
    assert [] == stops.calls
    assert handle is signal.getsignal(signal.SIGTERM)
    assert descriptor == wakeup_descriptor()


async def test_worker_that_starts_after_an_end_in_another_thread_is_not_stopped() -> (
    None
):
    first, second = Stops(), Stops()
    descriptor = wakeup_descriptor()
    listening = first.listening()
    listening.__enter__()
    send()
    await until(lambda: bool(first.calls))
    await to_thread.run_sync(listening.__exit__, None, None, None)
    with second.listening():
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        assert [] == second.calls
        send()
        await until(lambda: bool(second.calls))

    assert ["stop"] == first.calls == second.calls
    assert descriptor == wakeup_descriptor()


async def test_second_signal_has_its_usual_effect_without_a_second_action() -> None:
    received: list[int] = []

    def handle(number: int, frame: object) -> None:
        received.append(number)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, handle)
    stops = Stops()
    with stop_on_signals("billing", partial(stops._call, "stop")) as listener:
        send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert handle is signal.getsignal(signal.SIGTERM)
        await until(lambda: bool(stops.calls))

    assert [signal.SIGTERM] == received
    assert signal.SIGTERM is listener.received
    assert signal.default_int_handler is signal.getsignal(signal.SIGINT)


async def test_second_signal_cancels_workers_beside_a_consumer() -> None:
    consumer, worker = Stops(), Stops()
    with stop_on_signals("billing", partial(consumer._call, "stop")):
        with worker.listening():
            send()
            send(signal.SIGINT)
            await until(lambda: len(worker.calls) == 2)

    assert ["stop"] == consumer.calls


async def test_default_handlers_are_restored() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyError), Stops().listening(), Stops().listening():
        raise KeyError

    assert [signal.SIG_DFL, signal.SIG_IGN] == [*map(signal.getsignal, SIGNALS)]


async def test_handler_that_replaces_the_worker_stays() -> None:
    def handle(number: int, frame: object) -> None:
        pass

    with Stops().listening():
        signal.signal(signal.SIGTERM, handle)

    assert handle is signal.getsignal(signal.SIGTERM)


@on_asyncio
async def test_handler_of_the_event_loop_is_called_and_restored() -> None:
    loop = asyncio.get_running_loop()
    received: list[str] = []
    for number in (*SIGNALS, signal.SIGUSR1):
        loop.add_signal_handler(number, received.append, number.name)
    stops = Stops()
    with stops.listening():
        send(signal.SIGUSR1)
        await until(lambda: received == ["SIGUSR1"])
        send()
        await until(lambda: received[1:] == ["SIGTERM"] and stops.calls == ["stop"])
    send(signal.SIGINT)
    await until(lambda: received[2:] == ["SIGINT"])
    for number in (*SIGNALS, signal.SIGUSR1):
        assert loop.remove_signal_handler(number)


@on_asyncio
async def test_handler_of_the_event_loop_that_is_added_later_is_called() -> None:
    loop = asyncio.get_running_loop()
    received: list[str] = []
    with Stops().listening():
        loop.add_signal_handler(signal.SIGUSR1, received.append, "SIGUSR1")
        send(signal.SIGUSR1)
        await until(lambda: len(received) == 1)
    send(signal.SIGUSR1)
    await until(lambda: len(received) == 2)
    loop.remove_signal_handler(signal.SIGUSR1)


async def test_signal_that_another_thread_receives_wakes_the_event_loop() -> None:
    """The event loop waits for nothing else, so that no timer wakes it."""
    stopped = anyio.Event()
    ready = threading.Event()

    def send_from_thread() -> None:
        ready.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with stop_on_signals("billing", stopped.set, stopped.set):
        thread = threading.Thread(target=send_from_thread)
        thread.start()
        timer = threading.Timer(5.0, send, (signal.SIGCONT,))  # does not end a wait
        timer.start()
        began = anyio.current_time()
        ready.set()
        await stopped.wait()
        took = anyio.current_time() - began
        timer.cancel()
        thread.join()

    assert took < 4.0


async def test_forked_process_has_the_handlers_of_the_application() -> None:
    before = [*map(signal.getsignal, SIGNALS)]
    stops = Stops()
    with stops.listening():
        child = os.fork()
        if not child:
            os._exit(before != [*map(signal.getsignal, SIGNALS)])
        _, status = os.waitpid(child, 0)  # noqa: ASYNC222 (it has exited)
        send()
        await until(lambda: bool(stops.calls))

    assert 0 == status


def run_asyncio(main: Callable[[], Any]) -> None:
    asyncio.run(main())


def run_trio(main: Callable[[], Any]) -> None:
    pytest.importorskip("trio").run(main)


def run_uvloop(main: Callable[[], Any]) -> None:
    pytest.importorskip("uvloop").run(main())


@pytest.mark.parametrize("run", [run_asyncio, run_trio, run_uvloop])
def test_ctrl_c_does_not_interrupt_the_event_loop(run: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stops = Stops()

    async def main() -> None:
        installed = signal.getsignal(signal.SIGINT)
        with stops.listening():
            send(signal.SIGINT)
            await until(lambda: bool(stops.calls))
        assert installed is signal.getsignal(signal.SIGINT)

    run(main)

    assert ["stop"] == stops.calls
    assert signal.default_int_handler is signal.getsignal(signal.SIGINT)


@pytest.mark.parametrize("run", [run_asyncio, run_trio, run_uvloop])
def test_handler_of_trio_or_anyio_for_signals_is_called(run: Any) -> None:
    received: list[int] = []
    stops = Stops()

    async def main() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            with stops.listening():
                send()
                async for number in signals:
                    received.append(number)
                    break
                await until(lambda: bool(stops.calls))

    run(main)

    assert [signal.SIGTERM] == received
    assert ["stop"] == stops.calls


def test_uvicorn_and_a_worker_in_its_lifespan_both_stop() -> None:
    received: list[int] = []
    # uvicorn raises the signal again once it has ended.
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    stops = Stops()

    async def app(scope: Any, receive: Any, respond: Any) -> None:
        await receive()
        with stops.listening():
            await respond({"type": "lifespan.startup.complete"})
            send()
            await receive()
            await until(lambda: bool(stops.calls))
        await respond({"type": "lifespan.shutdown.complete"})

    config = uvicorn.Config(app, port=0, lifespan="on", log_level="warning")
    asyncio.run(uvicorn.Server(config).serve())

    assert ["stop"] == stops.calls
    assert [signal.SIGTERM] == received


async def test_sigint_that_is_ignored_stays_ignored() -> None:
    stops = Stops()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stops.listening():
            send(signal.SIGINT)
            await anyio.lowlevel.checkpoint()
            assert [] == stops.calls
            send()
            await until(lambda: stops.calls)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
