"""Requests that an embedded broker has received from the source."""

from tests.waiting import until_true

__all__ = ["count_requests", "wait_for_requests"]


def count_requests(broker, api):
    """Return how many requests of an API the broker has received."""
    return sum(each.api == api for each in broker.requests)


def wait_for_requests(broker, api, count):
    """Wait until the broker has received `count` more requests of an API.

    A member sends a heartbeat every 100 ms, and a query reads the group's offsets at
    each refresh. So this also shows that something does not happen meanwhile.
    """
    end = count_requests(broker, api) + count
    until_true(
        lambda: count_requests(broker, api) >= end,
        what=f"{count} more requests of {api} have arrived",
    )
