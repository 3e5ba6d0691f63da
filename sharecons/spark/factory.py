"""From options to a driver at work: the ledger is loaded, then the member joins."""

import os
from typing import Final, NamedTuple

from sharecons.admin.client import ShareGroupAdmin
from sharecons.config.validation import parse_bootstrap
from sharecons.net.cluster import Cluster
from sharecons.protocol.messages import FetchSettings
from sharecons.spark.acquirer import Joining
from sharecons.spark.driver import Driver
from sharecons.spark.hadoop_conf import check_location
from sharecons.spark.ledger import Ledger
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.options import SourceOptions, security_of
from sharecons.spark.store import Store
from sharecons.version import VERSION

__all__ = ["PATIENCE", "Opened", "driver_of", "open_driver", "store_of"]

PATIENCE: Final = 3.0
"""For the driver before this one, on this machine, to leave: Spark starts a query anew
without waiting for what it has just stopped."""


ASKING: Final = 10.0
"""For what the topics hold and how far the group is, while Spark waits. After that a
partition whose leader is away is left out."""


class Opened(NamedTuple):
    """A driver, and the id of its ledger."""

    driver: Driver
    ledger_id: str


def open_driver(options: SourceOptions, lock: LoadLock | None = None) -> Opened:
    """Load the ledger, join the group, and begin to acquire.

    Raises:
        ConfigurationError: Spark would look for the ledger's path elsewhere.
        LedgerError: the ledger cannot be used, or another driver has it.
        Error: no broker answers.
    """
    store = store_of(options, lock)
    ledger = store.load(options.group_id, patience=PATIENCE)
    driver = driver_of(options, store, ledger)
    try:
        driver.start()
    except BaseException:
        driver.stop()
        raise
    return Opened(driver, store.identity.ledger_id)


def store_of(options: SourceOptions, lock: LoadLock | None = None) -> Store:
    """Return the store of a query's ledger, before it is loaded.

    Raises:
        ConfigurationError: Spark would look for the ledger's path elsewhere.
    """
    check_location(options.ledger_location, os.environ)
    return Store(options.ledger_location, options.ledger_options, lock)


def driver_of(options: SourceOptions, store: Store, ledger: Ledger) -> Driver:
    """Return a driver for a ledger that the store has loaded, before it is started."""
    return Driver(
        _joining(options, store.member_id),
        _cluster(options),
        _admin(options),
        ledger,
        store,
        most_ahead=options.most_ahead,
        adopt=not options.fail_on_data_loss,
    )


def _cluster(options: SourceOptions) -> Cluster:
    return Cluster(
        parse_bootstrap(options.bootstrap_servers),
        client_id=options.client_id,
        software_version=VERSION,
        security=security_of(options.security),
    )


def _admin(options: SourceOptions) -> ShareGroupAdmin:
    return ShareGroupAdmin(
        options.bootstrap_servers,
        client_id=options.client_id,
        security=security_of(options.security),
        timeout=min(ASKING, options.request_timeout),
    )


def _joining(options: SourceOptions, member_id: str) -> Joining:
    return Joining(
        settings=FetchSettings(
            group_id=options.group_id,
            member_id=member_id,
            max_wait=options.max_wait,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            max_records=options.max_records,
            record_limit=False,
        ),
        topics=options.topics,
        offset_reset=options.offset_reset,
        rack=options.client_rack,
        request_timeout=options.request_timeout,
    )
