"""The errors of a record's verbs: accept, release, reject and renew."""

from typing import Final

from sharecons._record import AcknowledgeType
from sharecons.errors import (
    ClosedError,
    ConfigurationError,
    LockLostError,
    RecordStateError,
    UnsupportedVersionError,
    WrongThreadError,
)

__all__ = [
    "MAX_DELAY",
    "already_settled",
    "check_delay",
    "closed",
    "guarded",
    "lock_lost",
    "not_held",
    "not_renewable",
    "wrong_thread",
]


MAX_DELAY: Final = 3600.0
"""The longest delay of a release, in seconds: its record uses up the window of its
partition, and a renewal twice per lock duration, for as long."""


def check_delay(after: object) -> float:
    """Return the delay of a release.

    Raises:
        ConfigurationError: it is no number of seconds from 0 to MAX_DELAY.
    """
    if isinstance(after, bool) or not isinstance(after, int | float):
        raise ConfigurationError(f"after must be a number of seconds, not {after!r}")
    if not 0 <= after <= MAX_DELAY:
        raise ConfigurationError(
            f"after must be between 0 and {MAX_DELAY:,} seconds, not {after!r}; for "
            "longer delays use a ShareWorker with retry topics"
        )
    return float(after)


def already_settled(
    kind: AcknowledgeType, what: str, settled_by: int
) -> RecordStateError:
    """Return the error for a record whose acknowledgement was sent."""
    return RecordStateError(
        f"cannot {_verb(kind)} {what}: it was settled by "
        f"{_verb(AcknowledgeType(settled_by))}, and that was sent"
    )


def closed(kind: AcknowledgeType, what: str) -> ClosedError:
    """Return the error for a record of a closed consumer."""
    return ClosedError(
        f"cannot {_verb(kind)} {what}: the consumer is closed; its open records were "
        "released and will be delivered again"
    )


def guarded(kind: AcknowledgeType, what: str) -> RecordStateError:
    """Return the error for a record of a worker."""
    return RecordStateError(
        f"cannot {_verb(kind)} {what}: it belongs to a worker, which acknowledges it "
        "when its handler ends; nothing has changed. Return to accept the record, or "
        "raise Retry(after=...), Reject or DeadLetter"
    )


def lock_lost(kind: AcknowledgeType, what: str, reason: str) -> LockLostError:
    """Return the error for a record whose lock ended with its session."""
    return LockLostError(
        f"cannot {_verb(kind)} {what}: the acquisition lock was lost: {reason}; "
        "records that were not settled will be delivered again"
    )


def not_held(kind: AcknowledgeType, what: str) -> RecordStateError:
    """Return the error for an offset of which no delivery is known."""
    return RecordStateError(
        f"cannot {_verb(kind)} {what}: this consumer does not hold the record: it was "
        "not delivered to this consumer, or it was settled, or its lock has ended"
    )


def not_renewable(what: str) -> UnsupportedVersionError:
    """Return the error for a broker without KIP-1222."""
    return UnsupportedVersionError(
        f"cannot renew {what}: its broker is older than Kafka 4.2 (KIP-1222)"
    )


def wrong_thread(kind: AcknowledgeType, what: str) -> WrongThreadError:
    """Return the error for a call outside the event loop's thread."""
    verb = _verb(kind)
    return WrongThreadError(
        f"cannot {verb} {what} in this thread: the consumer's event loop runs in "
        f"another one; nothing has changed. Use "
        f"loop.call_soon_threadsafe(record.{verb}), "
        f"anyio.from_thread.run_sync(record.{verb}) or trio.from_thread.run_sync()"
    )


def _verb(kind: AcknowledgeType) -> str:
    return kind.name.lower()
