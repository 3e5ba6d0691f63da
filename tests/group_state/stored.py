"""States that a share coordinator returns, instead of its own."""

from sharecons.testing.broker.handlers import read_share_group_state

__all__ = ["with_batches"]

NAMES = ("first_offset", "last_offset", "delivery_state", "delivery_count")


def with_batches(*batches, partition=0):
    """Return a handler of ReadShareGroupState that responds with these batches."""
    state = [dict(zip(NAMES, map(int, each), strict=True)) for each in batches]

    async def respond(request, context):
        response = await read_share_group_state.handle(request, context)
        for topic in response["results"]:
            for each in topic["partitions"]:
                if each["partition"] == partition:
                    each["state_batches"] = state
        return response

    return respond
