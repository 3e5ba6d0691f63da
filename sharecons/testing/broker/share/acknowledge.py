"""Acknowledgements of one share partition: validated together, all or none applied.

Offsets before the start offset are ignored. If the member has not acquired one of the
other offsets, the whole partition fails (KIP-932, "Acknowledging"). This module changes
no states but renewed locks: the leader first writes the changes, then applies them.
"""

from collections.abc import Sequence
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.share.deliveries import (
    AcknowledgeError,
    AcknowledgementBatch,
    AcknowledgeType,
    Delivery,
    GroupSettings,
    State,
)
from sharecons.testing.broker.share.in_flight import InFlightBatch, Run, Window

__all__ = ["Change", "check_acknowledgements"]

Change = tuple[InFlightBatch, Run]
"""A batch in flight, and the new delivery of some of its offsets."""

FINAL: Final = {
    AcknowledgeType.GAP: State.ARCHIVED,
    AcknowledgeType.ACCEPT: State.ACKNOWLEDGED,
}
NOT_ACQUIRED: Final = "The offset cannot be acknowledged. The offset is not acquired."
NOT_THE_OWNER: Final = "Member is not the owner of offset"
BATCH_NOT_ACQUIRED: Final = (
    "The batch cannot be acknowledged. The batch is not in the acquired state."
)
NOT_THE_OWNER_OF_BATCH: Final = "Member is not the owner of batch record"
NO_RENEWAL: Final = "Renewing acquisition locks is not enabled for the group."
NOT_IN_FLIGHT: Final = (
    "Batch record not found. The request batch offsets are not found in the cache."
)
NO_LONGER_IN_FLIGHT: Final = "The records are no longer in flight."
FIRST_PAST_IN_FLIGHT: Final = (
    "Batch record not found. The first offset in request is past acquired records."
)
LAST_PAST_IN_FLIGHT: Final = (
    "Batch record not found. The last offset in request is past acquired records."
)


def check_acknowledgements(
    window: Window,
    member: str,
    batches: Sequence[AcknowledgementBatch],
    settings: GroupSettings,
    now: float,
) -> list[Change]:
    """Return the changes that the acknowledgements make.

    Raises:
        AcknowledgeError: nothing changes; but batches might be split and locks
            renewed, as Kafka's leaders do. The messages are Kafka's.
    """
    changes: list[Change] = []
    renewed_until = now + settings.lock_duration
    handled_through = -1
    for batch in batches:
        if batch.last_offset < window.start_offset:
            continue
        for found in _in_flight(window, batch):
            if found.last_offset < window.start_offset:
                continue
            for run in _acquired_runs(
                found, batch, window.start_offset, member, handled_through
            ):
                changes += _changes(found, run, batch, settings, renewed_until)
        handled_through = batch.last_offset
    return changes


def _in_flight(window: Window, batch: AcknowledgementBatch) -> list[InFlightBatch]:
    index = window.floor_index(batch.first_offset)
    if index < 0:
        if batch.first_offset < window.start_offset:
            index = window.floor_index(window.start_offset)
            if index < 0:
                raise AcknowledgeError(
                    NO_LONGER_IN_FLIGHT, ErrorCode.unknown_server_error
                )
        else:
            raise AcknowledgeError(NOT_IN_FLIGHT)
    found = window.batches[index : window.floor_index(batch.last_offset) + 1]
    last_offset = found[-1].last_offset if found else -1
    if last_offset < batch.first_offset:
        raise AcknowledgeError(FIRST_PAST_IN_FLIGHT, ErrorCode.invalid_request)
    if last_offset < batch.last_offset:
        raise AcknowledgeError(LAST_PAST_IN_FLIGHT, ErrorCode.invalid_request)
    return found


def _acquired_runs(
    found: InFlightBatch,
    batch: AcknowledgementBatch,
    start_offset: int,
    member: str,
    handled_through: int,
) -> list[Run]:
    """Return the acknowledged offsets of a batch in flight, all of the member's own."""
    if found.batch_delivery is not None:
        _check(found.batch_delivery, member, BATCH_NOT_ACQUIRED, NOT_THE_OWNER_OF_BATCH)
    first = max(batch.first_offset, start_offset)
    if max(first, found.first_offset) <= handled_through:
        raise AcknowledgeError(NOT_ACQUIRED)  # an earlier batch has acknowledged it
    is_all = first <= found.first_offset and found.last_offset <= batch.last_offset
    if not is_all or len(batch.types) > 1:
        found.split()
    runs = list(found.runs(first, batch.last_offset))
    for run in runs:
        _check(run.delivery, member)
    return runs


def _check(
    delivery: Delivery,
    member: str,
    not_acquired: str = NOT_ACQUIRED,
    not_the_owner: str = NOT_THE_OWNER,
) -> None:
    if delivery.state is not State.ACQUIRED:
        raise AcknowledgeError(not_acquired)
    if delivery.member != member:
        raise AcknowledgeError(not_the_owner)


def _changes(
    found: InFlightBatch,
    run: Run,
    batch: AcknowledgementBatch,
    settings: GroupSettings,
    renewed_until: float,
) -> list[Change]:
    changes: list[Change] = []
    for part, kind in _by_type(run, batch):
        if kind is not AcknowledgeType.RENEW:
            delivery = _delivery(run.delivery, kind, settings)
            changes.append((found, part._replace(delivery=delivery)))
        elif settings.may_renew:
            # Locks are only in memory: a renewal is not written.
            renewed = run.delivery.renewed(renewed_until)
            found.set_delivery(part._replace(delivery=renewed))
        else:
            raise AcknowledgeError(NO_RENEWAL)
    return changes


def _by_type(
    run: Run, batch: AcknowledgementBatch
) -> list[tuple[Run, AcknowledgeType]]:
    """Split neighbours where the acknowledgement type changes."""
    if len(batch.types) == 1:
        return [(run, AcknowledgeType(batch.types[0]))]
    parts: list[tuple[Run, AcknowledgeType]] = []
    for offset in range(run.first_offset, run.last_offset + 1):
        kind = AcknowledgeType(batch.types[offset - batch.first_offset])
        if parts and parts[-1][1] is kind:
            parts[-1] = parts[-1][0]._replace(last_offset=offset), kind
        else:
            parts.append((Run(offset, offset, run.delivery), kind))
    return parts


def _delivery(
    delivery: Delivery, kind: AcknowledgeType, settings: GroupSettings
) -> Delivery:
    if kind is AcknowledgeType.RELEASE:
        return delivery.released(settings)
    if kind is AcknowledgeType.REJECT:
        return delivery.rejected(settings.archive_state)
    return delivery.ended(FINAL[kind])
