"""Decides about dead letters, with the partitions of their targets."""

from collections.abc import Mapping
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.dead_letters.models import DeadLetterRecord, LetterOffset
from sharecons.dead_letters.plan import Decision, RedrivePlan, Write
from sharecons.dead_letters.reader import is_topic
from sharecons.errors import BrokerError
from sharecons.protocol.codes import Code

__all__ = ["Decider"]

NO_TOPIC: Final = (
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.UNKNOWN_TOPIC_ID,
    Code.INVALID_TOPIC_EXCEPTION,
)


class Decider:
    """Applies the plan of a redrive; looks up each target topic once."""

    def __init__(self, admin: ShareGroupAdmin, plan: RedrivePlan) -> None:
        self._admin = admin
        self._plan = plan
        self._partitions: dict[str, int] = {}

    async def decide(
        self, letter: DeadLetterRecord, twin: LetterOffset | None
    ) -> Decision:
        """Return what the redrive does with a dead letter.

        Args:
            twin: a dead letter of the same record that was redriven, or None.

        Raises:
            Error: its source cannot be read, or its target cannot be looked up.
        """
        partitions = await self._partitions_of(letter)
        decision = self._plan.decide(letter, partitions, twin)
        return _checked(letter, decision)

    async def find_target(self, letter: DeadLetterRecord) -> Decision:
        """Return where a dead letter of an interrupted batch is written.

        Raises as `decide`.
        """
        decision = self._plan.find_target(letter, await self._partitions_of(letter))
        return _checked(letter, decision)

    async def _partitions_of(self, letter: DeadLetterRecord) -> Mapping[str, int]:
        topic = self._plan.target_topic(letter)
        if topic is not None and topic not in self._partitions:
            self._partitions[topic] = await self._partition_count(topic)
        return self._partitions

    async def _partition_count(self, topic: str) -> int:
        if not is_topic(topic):
            return 0
        described = (await self._admin.describe_topics(topic))[topic]
        error = described.error
        if isinstance(error, BrokerError) and error.code in NO_TOPIC:
            return 0
        return len(described.value.partitions)


def _checked(letter: DeadLetterRecord, decision: Decision) -> Decision:
    """Return the decision; raise the error of a source that could not be read."""
    if isinstance(decision, Write) and letter.error is not None:
        raise letter.error
    return decision
