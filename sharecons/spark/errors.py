"""Errors of the Spark source, in addition to the client's errors.

    Error
    ├── LedgerError                  the ledger cannot be read or written
    │   ├── LedgerTakenError         another driver writes to the ledger
    │   ├── LedgerMismatchError      the ledger is of another group, or of an old topic
    │   └── LedgerLostError          the ledger lacks entries that a query needs
    ├── TopicMissingError            a subscribed topic does not exist
    └── DataLostError                the log no longer has records of the ledger

Spark shows only the text of an error, so each message says what happened, where, and
what to do. A test compares the drawing with the classes.
"""

from sharecons.errors import Error

__all__ = [
    "DataLostError",
    "LedgerError",
    "LedgerLostError",
    "LedgerMismatchError",
    "LedgerTakenError",
    "TopicMissingError",
]


class LedgerError(Error):
    """The ledger cannot be read or written; the offsets concerned were not accepted."""


class LedgerTakenError(LedgerError):
    """Another driver writes to this ledger; this driver must stop immediately."""


class LedgerMismatchError(LedgerError):
    """The ledger is of another group, or of a topic that was recreated since."""


class LedgerLostError(LedgerError):
    """The ledger lacks entries or positions that a query needs."""


class TopicMissingError(Error):
    """A subscribed topic does not exist, or was deleted while the query ran."""


class DataLostError(Error):
    """Records listed in the ledger were removed from the log before they were read."""
