"""A finding: a problem of a partition or topic, and its severity."""

import enum
from dataclasses import dataclass

__all__ = ["Finding", "Reason", "Severity"]


class Severity(enum.IntEnum):
    """Severity of a finding; JSON has the names in lower case."""

    FINE = 0
    NOTE = 1
    WARNING = 2
    STALLED = 3


class Reason(enum.Enum):
    """Subject of a finding; JSON has the values."""

    SETTLED = "settled"
    WORKING = "working"
    NOT_BEGUN = "not_begun"
    SKIPPED = "skipped"
    HELD = "held"
    OPEN_TRANSACTION = "open_transaction"
    UNSEEN_LOG = "unseen_log"
    REMOVED = "removed"
    ARCHIVED = "archived"
    HELD_UP = "held_up"
    MAY_BE_LOCKED = "may_be_locked"
    NO_PROGRESS = "no_progress"
    DELIVERY_LIMIT = "delivery_limit"
    WINDOW_NEARLY_FULL = "window_nearly_full"
    WINDOW_FULL = "window_full"
    UNASSIGNED = "unassigned"
    NO_MEMBERS = "no_members"
    MISSING_TOPIC = "missing_topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A statement about one partition, or about a topic that does not exist."""

    reason: Reason
    severity: Severity
    text: str
