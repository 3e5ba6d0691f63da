"""The state of a share partition, read from the share coordinator."""

import base64
from uuid import UUID

from kio.schema.find_coordinator import v6 as find_coordinator
from kio.schema.read_share_group_state import v0 as read_state
from kio.schema.read_share_group_state.v0.request import PartitionData, ReadStateData
from kio.static.primitive import i8, i32

from tests.kafka_plugin import send_request

SHARE = i8(2)
LEADER_EPOCH = i32(0)
"""The epoch of a new topic. A higher one than the leader's would fence the leader."""

State = tuple[int, int, int, int]


def share_group_state(
    bootstrap: str, group: str, topic_id: bytes, partition: int
) -> list[State]:
    """Return first and last offset, delivery state and delivery count of each range."""
    host, port = bootstrap.split(",")[0].rsplit(":", 1)
    topic_text = base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()
    key = f"{group}:{topic_text}:{partition}"
    found = send_request(
        (host, int(port)),
        find_coordinator.FindCoordinatorRequest(
            key_type=SHARE, coordinator_keys=(key,)
        ),
        find_coordinator.FindCoordinatorResponse,
    ).coordinators[0]
    requested = PartitionData(partition=i32(partition), leader_epoch=LEADER_EPOCH)
    response = send_request(
        (found.host, int(found.port)),
        read_state.ReadShareGroupStateRequest(
            group_id=group,
            topics=(
                ReadStateData(topic_id=UUID(bytes=topic_id), partitions=(requested,)),
            ),
        ),
        read_state.ReadShareGroupStateResponse,
    )
    (result,) = response.results[0].partitions
    assert not result.error_code, result
    return [
        (b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
        for b in result.state_batches
    ]
