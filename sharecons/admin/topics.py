"""Descriptions of topics."""

from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.fanout import results_of
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.admin.results import Results

__all__ = ["describe_topics"]


async def describe_topics(
    executor: AdminExecutor, names: tuple[str, ...], authorized_operations: bool
) -> Results[str, Topic]:
    """Describe topics, even if partitions have no leader at the moment."""
    response = await executor.brokers.request_topics(
        names or None, executor.deadline, authorized_operations=authorized_operations
    )
    replies = {name: response.topics[name] for name in names or sorted(response.topics)}
    return results_of(replies, "describe", lambda name: f"topic {name!r}")
