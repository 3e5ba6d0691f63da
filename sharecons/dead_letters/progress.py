"""The stored progress of a redrive: a committed offset and its metadata, as text.

Offsets of the dead-letter topic below the committed one are done. While a batch is
written, the metadata has what is needed to complete it after a crash: where it ends,
the producer id, and for each target partition its end and the first sequence number
before the batch.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.protocol.produce.messages import ProducerIdentity

__all__ = [
    "MAX_METADATA",
    "InFlight",
    "Progress",
    "TargetState",
    "decode_metadata",
    "encode_metadata",
    "metadata_size",
]

VERSION: Final = 1
MAX_METADATA: Final = 3_000
"""Characters; brokers reject more than offset.metadata.max.bytes, 4,096 by default."""


class TargetState(NamedTuple):
    """A target partition before a batch: its end, and the batch's first sequence."""

    end_offset: int
    sequence: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """A batch that is being written: the dead letters up to `until` (excluded)."""

    until: int
    identity: ProducerIdentity
    targets: Mapping[TopicPartition, TargetState]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress in one partition of a dead-letter topic.

    Attributes:
        offset: the first dead letter that is not done.
        plan: a digest of what is redriven where; another plan needs another name.
        run: the process that works on it; another one has taken over if it differs.
        in_flight: the batch that might be written in part, or None.
    """

    offset: int
    plan: str
    run: str
    in_flight: InFlight | None = None


def encode_metadata(progress: Progress) -> str:
    """Return the metadata of the committed offset."""
    fields: dict[str, Any] = {
        "v": VERSION,
        "plan": progress.plan,
        "run": progress.run,
    }
    if progress.in_flight is not None:
        targets: dict[str, dict[str, list[int]]] = {}
        for key, state in progress.in_flight.targets.items():
            targets.setdefault(key.topic, {})[str(key.partition)] = list(state)
        fields["batch"] = {
            "until": progress.in_flight.until,
            "producer": list(progress.in_flight.identity),
            "targets": targets,
        }
    return json.dumps(fields, separators=(",", ":"))


def decode_metadata(offset: int, metadata: str) -> Progress:
    """Return the progress that was committed.

    Raises:
        ValueError: no redrive has written the metadata.
    """
    try:
        fields = json.loads(metadata)
        if fields["v"] != VERSION:
            raise ValueError(f"version {fields['v']}")
        batch = fields.get("batch")
        return Progress(
            offset=offset,
            plan=str(fields["plan"]),
            run=str(fields["run"]),
            in_flight=None if batch is None else _in_flight(batch),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"missing: {error}") from error


def _in_flight(batch: Any) -> InFlight:
    producer_id, epoch = batch["producer"]
    return InFlight(
        until=int(batch["until"]),
        identity=ProducerIdentity(int(producer_id), int(epoch)),
        targets={
            TopicPartition(topic, int(partition)): TargetState(int(end), int(sequence))
            for topic, partitions in batch["targets"].items()
            for partition, (end, sequence) in partitions.items()
        },
    )


def metadata_size(targets: Mapping[TopicPartition, object]) -> int:
    """Return how many characters the metadata of a batch has at most."""
    topics = {key.topic for key in targets}
    return 250 + sum(len(json.dumps(each)) + 6 for each in topics) + 50 * len(targets)
