"""The backlogs of Spark queries in the metrics."""

import threading
from pathlib import Path

import pytest

from sharecons import ShareGroupAdmin
from sharecons.cli import main
from sharecons.errors import ConfigurationError
from sharecons.exporter import Collector
from sharecons.exporter.ledgers import Ledgers
from sharecons.exporter.metrics import Metrics
from sharecons.spark.backlog import LedgerBacklog
from sharecons.spark.history import entry_name
from tests.exporter.ledgers import BACKLOG, write_ledger
from tests.exporter.scraped import GROUP, scrape

pytestmark = pytest.mark.anyio


async def collected(admin, group, *ledgers):
    metrics = Metrics()
    metrics.update(await Collector(admin, [group], ledgers=Ledgers(ledgers)).collect())
    return scrape(metrics)


async def test_backlog_and_lag_have_the_same_partitions(admin, kafka, group, tmp_path):
    topic = kafka.admin.create_topic(2)
    await admin.alter_share_group_offsets(group, {(topic, 0): 0, (topic, 1): 0})
    ledger = write_ledger(tmp_path / "ledger", group, topic, finished=30)

    shown = await collected(admin, group, ledger)

    assert shown.by("partition", BACKLOG, group=group, topic=topic, ledger=ledger) == {
        "0": 70,
        "1": 0,
    }
    assert set(shown.by("partition", f"{GROUP}lag_records", topic=topic)) == {"0", "1"}


async def test_several_ledgers_of_a_group_have_a_value_each(admin, group, tmp_path):
    first = write_ledger(tmp_path / "a", group, "orders", acquired=5)
    second = write_ledger(tmp_path / "b", group, "orders", acquired=7)

    shown = await collected(admin, group, first, second, first)

    assert shown.by("ledger", BACKLOG) == {first: 5, second: 7}


async def test_ledger_of_a_group_that_is_not_selected_is_exported(admin, tmp_path):
    ledger = write_ledger(tmp_path / "ledger", "billing", "orders")

    shown = await collected(admin, "other", ledger)

    assert shown.value(BACKLOG, group="billing", topic="orders", partition="0") == 100


async def test_unreadable_ledger_is_an_error_and_the_others_are_exported(
    admin, group, tmp_path
):
    ledger = write_ledger(tmp_path / "ledger", group, "orders")
    damaged = write_ledger(tmp_path / "damaged", group, "orders")
    (Path(damaged) / entry_name(1)).write_bytes(b"")
    metrics = Metrics()
    ledgers = Ledgers([str(tmp_path / "nowhere"), damaged, ledger])

    snapshot = await Collector(admin, [group], ledgers=ledgers).collect()
    metrics.update(snapshot)

    shown = scrape(metrics)
    assert shown.by("ledger", BACKLOG) == {ledger: 100}
    assert shown.value("sharecons_exporter_errors_total", what="ledgers") == 2
    assert any("there is no ledger in" in each for each in snapshot.error_messages)
    assert any("is damaged" in each for each in snapshot.error_messages)


async def test_backlog_is_left_out_without_brokers(tmp_path):
    ledger = write_ledger(tmp_path / "ledger", "billing", "orders")
    async with ShareGroupAdmin(bootstrap_servers="127.0.0.1:1", timeout=0.2) as admin:
        shown = await collected(admin, "billing", ledger)

    assert shown.values(BACKLOG) == []


async def test_hanging_ledger_is_read_by_one_thread_at_a_time(monkeypatch):
    goes_on, ended, reads = threading.Event(), threading.Event(), []

    class Reader:
        def __init__(self, location):
            self._location = location

        def read(self):
            reads.append(self._location)
            if self._location == "slow":
                goes_on.wait(10)
                ended.set()
            return LedgerBacklog(group_id="billing", offsets={})

    monkeypatch.setattr("sharecons.exporter.ledgers.BacklogReader", Reader)
    monkeypatch.setattr("sharecons.exporter.ledgers.READ_TIMEOUT", 0.05)
    ledgers = Ledgers(["slow", "other"])
    for _ in range(3):
        found, (error,) = await ledgers.read()

        assert list(found) == ["other"]
        assert "the ledger in slow was not read within 0.05 s" in str(error)
    assert reads.count("slow") == 1
    goes_on.set()
    assert ended.wait(5)


def test_location_that_cannot_store_a_ledger_is_rejected(capsys):
    with pytest.raises(ConfigurationError, match="ftp"):
        Ledgers(["ftp://host/ledger"])

    code = main(
        ["exporter", "--bootstrap-server", "127.0.0.1:1", "--ledger", "ftp://host/x"]
    )

    assert code == 2
    assert "--ledger: " in capsys.readouterr().err
