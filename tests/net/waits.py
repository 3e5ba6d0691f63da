"""Waiting in tests without real time."""

from anyio.lowlevel import checkpoint


async def wait_and_end(waiter, deadline):
    """Wait as readers do; return whether the waiter was woken before the deadline."""
    try:
        return await waiter.wait(deadline)
    finally:
        waiter.end_wait()


async def other_tasks_have_run():
    """Let every task run that is ready now, and then the callbacks of these tasks.

    trio runs the tasks of one round in random order: after two rounds each has run.
    """
    for _ in range(3):
        await checkpoint()
