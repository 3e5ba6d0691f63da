"""The ledger of a Spark query, for tests of the exporter."""

from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.store import Store

__all__ = ["BACKLOG", "write_ledger"]

BACKLOG = "sharecons_ledger_backlog_records"
TOPIC_ID = bytes(range(16))


def write_ledger(location, group, topic, *, acquired=100, finished=0):
    """Write the ledger of a query with offsets of partition 0."""
    store = Store(str(location))
    store.open(group)
    store.append([AcquiredRange(topic, TOPIC_ID, 0, 0, acquired - 1, 1)])
    store.mark_finished(finished)
    store.close()
    return str(location)
