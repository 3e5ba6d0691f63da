"""The parts of a consumer that concern all acknowledgements, not one record."""

from sharecons import verb_errors
from sharecons._record import AcknowledgeType
from sharecons.config import validation
from sharecons.config.callables import check_callback
from sharecons.consumer.lifecycle import Lifecycle
from sharecons.member.record_source import Acknowledged

__all__ = ["Acknowledging"]


class Acknowledging(Lifecycle):
    """Acknowledges records by their offsets, and sets the callback for results."""

    def acknowledge(
        self, topic: str, partition: int, offset: int, type: AcknowledgeType
    ) -> None:
        """Acknowledge a record by its offset, as the methods of the record do.

        For programs that keep offsets instead of records. Includes records that raised
        `DeserializationError`, until the task reads again. If the record was delivered
        several times, this acknowledges the latest delivery.

        Raises:
            RecordStateError: the consumer does not hold this record, or it is already
                acknowledged in another way.
            LockLostError: its lock was lost; it will be delivered again.
            UnsupportedVersionError: RENEW, and the broker is older than Kafka 4.2.
            ConfigurationError: an argument is invalid.
            ConsumerStateError, ClosedError: the consumer is not open.
        """
        kind = validation.check_acknowledge_type("type", type)
        validation.check_topic("topic", topic)
        validation.check_count("partition", partition, 0)
        validation.check_count("offset", offset, 0, validation.INT64_MAX)
        self._source.check_open()
        lease = self._source.buffer.delivered.find(topic, partition, offset)
        if lease is None:
            raise verb_errors.not_held(kind, f"{topic}-{partition}@{offset}")
        lease.acknowledge(offset, kind)

    @property
    def on_acknowledged(self) -> Acknowledged | None:
        """The function that is called with the results of acknowledgements, or None.

        Can be set at any time. The new function receives all results that arrive after
        that, including the results of acknowledgements in flight.
        """
        return self._source.on_acknowledged

    @on_acknowledged.setter
    def on_acknowledged(self, callback: Acknowledged | None) -> None:
        check_callback("on_acknowledged", callback)
        self._source.report_results_to(callback)

    @property
    def lock_duration(self) -> float | None:
        """Seconds for which the broker locks records that it delivers.

        This is the group's `share.record.lock.duration.ms` as of the latest fetch; None
        before the first one. `Record.lock_remaining` is the time left of one record.
        """
        return self._source.lock_duration
