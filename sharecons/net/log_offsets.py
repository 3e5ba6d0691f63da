"""Looking up offsets in the logs of partitions, at their leaders."""

from collections.abc import Mapping

from sharecons._record import TopicPartition
from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.models import LogOffset, OffsetSpec
from sharecons.protocol.admin.requests import ListOffsets, Reply
from sharecons.protocol.admin.results import Results

__all__ = ["list_offsets"]


async def list_offsets(
    executor: AdminExecutor,
    specs: Mapping[TopicPartition, OffsetSpec],
    read_committed: bool,
) -> Results[TopicPartition, LogOffset]:
    """Return the offset of each partition; raises as `AdminExecutor`."""

    async def send(
        node_id: int, keys: tuple[TopicPartition, ...]
    ) -> Mapping[TopicPartition, Reply[LogOffset]]:
        request = ListOffsets(
            specs={key: specs[key] for key in keys}, read_committed=read_committed
        )
        response: Mapping[TopicPartition, Reply[LogOffset]] = await executor.send(
            node_id, request
        )
        return response

    return await executor.of_partitions(specs, "look up the offset of", send)
