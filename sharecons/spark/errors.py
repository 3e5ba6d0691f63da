"""What the Spark source raises beside the errors of the client.

    Error
    ├── LedgerError                  the ledger could not be read or written
    │   ├── LedgerTakenError         another driver writes it
    │   ├── LedgerMismatchError      it belongs to another group, or to another topic
    │   └── LedgerLostError          what a query needs of it is not there
    ├── TopicMissingError            a subscribed topic is not there
    └── DataLostError                the log no longer has records that are to be read

Spark shows no more of an error than its text, so each names what, where, and what to
do. The drawing is compared with the classes by a test.
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
    """The ledger could not be read or written; nothing of that was accepted."""


class LedgerTakenError(LedgerError):
    """Another driver writes this ledger; this one must stop at once."""


class LedgerMismatchError(LedgerError):
    """The ledger belongs to another group, or to a topic that was made anew since."""


class LedgerLostError(LedgerError):
    """The ledger does not hold, or no longer, what a query needs of it."""


class TopicMissingError(Error):
    """A subscribed topic does not exist, or was deleted while it was read."""


class DataLostError(Error):
    """Records that the ledger names were removed from the log before they were read."""
