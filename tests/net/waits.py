"""Waiting in tests without real time."""

import asyncio

from anyio.lowlevel import checkpoint


async def wait_and_end(waiter, deadline):
    """Wait as readers do; return whether the waiter was woken before the deadline."""
    try:
        return await waiter.wait(deadline)
    finally:
        waiter.end_wait()


async def other_tasks_have_run():
    """Let every task that is ready now run, and callbacks that they schedule.

    trio runs the tasks of one round in random order: after two rounds each has run.
    """
    for _ in range(3):
        await checkpoint()


async def buffered(wire, size):
    """Wait until an asyncio transport has received this much of a large frame."""
    while wire._buffer._received < size:
        await asyncio.sleep(0)
