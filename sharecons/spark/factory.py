"""Creates a driver from options: opens the ledger, then joins the group."""

import os
from typing import Final, NamedTuple

from sharecons.admin.client import ShareGroupAdmin
from sharecons.config.validation import parse_bootstrap
from sharecons.member.group_setup import OffsetReset
from sharecons.member.settings import MemberSettings
from sharecons.net.cluster import Cluster
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.spark.acquirer import MemberConfig
from sharecons.spark.ahead_limit import AheadLimit
from sharecons.spark.driver import Driver
from sharecons.spark.hadoop_conf import check_location
from sharecons.spark.ledger import Ledger
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.options import QueryOptions, load_security
from sharecons.spark.store import Store
from sharecons.version import VERSION

__all__ = [
    "TAKEOVER_TIMEOUT",
    "OpenedDriver",
    "create_driver",
    "create_store",
    "open_driver",
]

TAKEOVER_TIMEOUT: Final = 3.0
"""Seconds for the previous driver on this machine to unlock the ledger: Spark restarts
a query without waiting for the end of the one it has just stopped."""

ADMIN_TIMEOUT: Final = 10.0
"""Seconds for reading the topics' and the group's offsets while Spark waits. After that
partitions without a leader are left out."""


class OpenedDriver(NamedTuple):
    """A started driver, and its ledger.

    Attributes:
        finished: up to where batches of earlier runs have finished; 0 if unknown.
    """

    driver: Driver
    ledger_id: str
    finished: int = 0


def open_driver(options: QueryOptions, lock: LoadLock | None = None) -> OpenedDriver:
    """Open the ledger, join the group, and start to acquire.

    Raises:
        ConfigurationError: Spark resolves the ledger's path to another filesystem.
        LedgerError: the ledger cannot be used, or another driver uses it.
        Error: no broker responds.
    """
    store = create_store(options, lock)
    ledger = store.open(options.group_id, lock_timeout=TAKEOVER_TIMEOUT)
    driver = create_driver(options, store, ledger)
    try:
        driver.start()
    except BaseException:
        driver.stop()
        raise
    return OpenedDriver(driver, store.identity.ledger_id, store.finished)


def create_store(options: QueryOptions, lock: LoadLock | None = None) -> Store:
    """Return the store of a query's ledger, which is not opened yet.

    Raises:
        ConfigurationError: Spark resolves the ledger's path to another filesystem.
    """
    check_location(options.ledger_location, os.environ)
    return Store(options.ledger_location, options.ledger_options, lock)


def create_driver(options: QueryOptions, store: Store, ledger: Ledger) -> Driver:
    """Return a driver, not started yet, for the ledger that the store has opened."""
    return Driver(
        _member_config(options, store.member_id),
        _create_admin(options),
        ledger,
        store,
        ahead=AheadLimit(
            ledger.begin,
            fixed=options.max_offsets_ahead,
            max_offsets=options.max_offsets_per_trigger,
            min_offsets=options.min_offsets_per_trigger,
        ),
        allow_topic_loss=not options.fail_on_data_loss,
    )


def _create_cluster(options: QueryOptions) -> Cluster:
    return Cluster(
        parse_bootstrap(options.bootstrap_servers),
        client_id=options.client_id,
        software_version=VERSION,
        security=load_security(options.security),
    )


def _create_admin(options: QueryOptions) -> ShareGroupAdmin:
    return ShareGroupAdmin(
        bootstrap_servers=options.bootstrap_servers,
        client_id=options.client_id,
        security=load_security(options.security),
        timeout=min(ADMIN_TIMEOUT, options.request_timeout),
    )


def _member_config(options: QueryOptions, member_id: str) -> MemberConfig:
    fetch = FetchSettings(
        group_id=options.group_id,
        member_id=member_id,
        max_wait=options.max_wait,
        min_bytes=options.min_bytes,
        max_bytes=options.max_bytes,
        max_records=options.max_records,
        record_limit=False,
    )
    settings = MemberSettings(
        fetch=fetch,
        cluster=_create_cluster(options),
        auto_offset_reset=OffsetReset(options.offset_reset),
        client_rack=options.client_rack,
        request_timeout=options.request_timeout,
        enable_metrics_push=options.enable_metrics_push,
    )
    return MemberConfig(
        settings=settings, topics=options.topics, topic_pattern=options.topic_pattern
    )
