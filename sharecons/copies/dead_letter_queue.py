"""Where records are written that have failed for good."""

from dataclasses import dataclass

from sharecons.config.validation import check_topic
from sharecons.errors import ConfigurationError

__all__ = ["DeadLetterQueue", "dead_letter_topic"]


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """Where a worker writes the records that it gives up.

    The topic must exist. A dead letter has the record's key, value and headers, and
    headers that say which record it was and why it failed for good.

    Raises:
        ConfigurationError: the name is not a topic's.
    """

    topic: str

    def __post_init__(self) -> None:
        check_topic("dead_letter", self.topic)


def dead_letter_topic(name: str, given: object) -> str | None:
    """Return the topic of a dead-letter queue, or of its name.

    Raises:
        ConfigurationError: it is of another type, or the name is not a topic's.
    """
    if isinstance(given, str):
        return DeadLetterQueue(given).topic
    if given is None:
        return None
    if isinstance(given, DeadLetterQueue):
        return given.topic
    raise ConfigurationError(
        f"{name} must be a DeadLetterQueue, the name of a topic, or None, not "
        f"{given!r}; use DeadLetterQueue('orders.dead')"
    )
