"""`pause` and `resume`: topics from which a consumer takes no records for a while."""

from collections.abc import Iterable

from sharecons.config import validation
from sharecons.consumer.lifecycle import Lifecycle
from sharecons.consumer.readers import Readers
from sharecons.errors import ConfigurationError

__all__ = ["Pausing"]


class Pausing(Lifecycle):
    """Pauses and resumes topics of the subscription."""

    _readers: Readers

    def pause(self, *topics: str | Iterable[str]) -> None:
        """Fetch and return no more records of these topics, until `resume`.

        The subscription and the assignment stay, and heartbeats continue. Records that
        a loop has received can still be acknowledged. Records that were fetched and
        not returned wait for `resume`, and their locks are renewed. After a minute,
        records on their first delivery are released. Topics, not partitions, are
        paused, as the group assigns the partitions. Without names nothing changes.

        Raises:
            ConfigurationError: a topic is not in the subscription.
            ClosedError, ConsumerStateError: the consumer is not open.
        """
        names = self._subscribed("pause", topics)
        self._set_paused(self._source.paused.union(names))

    def resume(self, *topics: str | Iterable[str]) -> None:
        """Fetch and return records of these topics again; wakes waiting loops.

        Topics that are not paused, and no names, change nothing. Raises as `pause`.
        """
        names = self._subscribed("resume", topics)
        self._set_paused(self._source.paused.difference(names))

    @property
    def paused(self) -> frozenset[str]:
        """The topics that are paused."""
        return self._source.paused

    def _subscribed(
        self, verb: str, topics: Iterable[str | Iterable[str]]
    ) -> tuple[str, ...]:
        """Return the names of topics; raises as `pause`."""
        self._source.check_open()
        names = validation.check_topics(topics)
        for name in names:
            if name not in self._source.topics:
                raise ConfigurationError(
                    f"cannot {verb} topic {name!r}: it is not in the subscription; "
                    "call subscribe() first"
                )
        return names

    def _set_paused(self, topics: frozenset[str]) -> None:
        self._source.set_paused(topics)
        # The current lease can be withheld: the loop must not take from it.
        self._readers.interrupt()
