"""The states of lost records."""

from sharecons import TopicPartition
from sharecons.admin import DeliveryState, SharePartitionState, StateBatch
from tests.chaos.group_state import state_notes, state_of


def batch(first: int, last: int, state: DeliveryState, count: int) -> StateBatch:
    return StateBatch(
        first_offset=first, last_offset=last, state=state, delivery_count=count
    )


STATES = {
    TopicPartition("orders", 0): SharePartitionState(
        start_offset=10,
        state_epoch=1,
        batches=(
            batch(10, 12, DeliveryState.AVAILABLE, 3),
            batch(15, 15, DeliveryState.ARCHIVED, 5),
        ),
    )
}


def test_state_of_a_record_is_that_of_its_batch() -> None:
    def state(offset: int, partition: int = 0) -> str:
        return state_of(("orders", partition, offset), STATES)

    assert "acknowledged or archived" == state(9)
    assert "available after 3 deliveries" == state(12)
    assert "archived after 5 deliveries" == state(15)
    assert "not delivered yet, or locked for the first time" == state(16)
    assert "in a partition without a state" == state(0, partition=1)


def test_notes_count_lost_records_by_their_state() -> None:
    positions = {
        1: [("orders", 0, 3)],
        2: [("orders", 0, 12), ("orders", 0, 3)],
        3: [("orders", 0, 11)],
    }

    assert [
        "2 lost: available after 3 deliveries",
        "1 lost: acknowledged or archived",
        "1 lost: not in the topic",
    ] == state_notes([1, 2, 3, 4], positions, STATES)
