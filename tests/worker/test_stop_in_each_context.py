"""`stop_now` in each context, in programs that anyio has not started.

anyio finds no event loop in their callbacks.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import trio
import uvloop

from sharecons import Record, ShareWorker
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS

Stop = Callable[[], None]

RUNNERS = {"asyncio": asyncio.run, "uvloop": uvloop.run}


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """Restore the signal handlers of pytest."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def by_loop_signal(stop: Stop) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, stop)
    send(signal.SIGUSR1)


def by_signal_while_the_loop_waits(stop: Stop) -> None:
    signal.signal(signal.SIGUSR1, lambda number, frame: stop())
    threading.Timer(0.05, send, [signal.SIGUSR1]).start()


def by_two_signals(stop: Stop) -> None:
    send(signal.SIGTERM)
    send(signal.SIGTERM)


ON_ASYNCIO: dict[str, Callable[[Stop], object]] = {
    "call_soon": lambda stop: asyncio.get_running_loop().call_soon(stop),
    "call_later": lambda stop: asyncio.get_running_loop().call_later(0.01, stop),
    "loop-signal": by_loop_signal,
    "signal": by_signal_while_the_loop_waits,
    "two-signals": by_two_signals,
    "thread": lambda stop: threading.Thread(target=stop).start(),
    "handler": lambda stop: stop(),
}

ON_TRIO: dict[str, Callable[[Stop], object]] = {
    "run_sync_soon": lambda stop: (
        trio.lowlevel.current_trio_token().run_sync_soon(stop)
    ),
    "signal": by_signal_while_the_loop_waits,
    "two-signals": by_two_signals,
    "thread": lambda stop: threading.Thread(target=stop).start(),
    "from_thread": lambda stop: threading.Thread(
        target=partial(
            trio.from_thread.run_sync,
            stop,
            trio_token=trio.lowlevel.current_trio_token(),
        )
    ).start(),
    "handler": lambda stop: stop(),
}


async def run_until_stopped(
    stop_by: Callable[[Stop], object], sleep_forever: Callable[[], Any]
) -> None:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=1)
        broker.produce("orders", [b"a"])

        async def hang(record: Record[Any, Any]) -> None:
            stop_by(worker.stop_now)
            await sleep_forever()

        worker = ShareWorker(
            "orders",
            hang,
            group_id="billing",
            bootstrap_servers=broker.bootstrap_servers,
            network=broker.network,
            auto_offset_reset="earliest",
            shutdown_grace=30.0,
        )
        await worker.run()


async def sleep_on_asyncio() -> None:
    await asyncio.Event().wait()


@pytest.mark.slow("signals and threads, in real time")
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("context", ON_ASYNCIO)
def test_stop_now_in_a_program_of_asyncio_ends_it(runner: str, context: str) -> None:
    began = time.monotonic()
    RUNNERS[runner](run_until_stopped(ON_ASYNCIO[context], sleep_on_asyncio))
    assert time.monotonic() - began < 8.0


@pytest.mark.slow("signals and threads, in real time")
@pytest.mark.parametrize("context", ON_TRIO)
def test_stop_now_in_a_program_of_trio_ends_it(context: str) -> None:
    began = time.monotonic()
    trio.run(run_until_stopped, ON_TRIO[context], trio.sleep_forever)
    assert time.monotonic() - began < 8.0
