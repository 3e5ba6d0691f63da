"""Waiting as who waits is to."""


async def waited(waiter, deadline):
    """Give whether it was woken before the deadline."""
    try:
        return await waiter.wait(deadline)
    finally:
        waiter.end_wait()
