"""Warnings about records that a release has archived."""

import logging

from sharecons.log import get_logger
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.archive_warnings import ArchiveWarnings
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.record import RELEASE


def released(topic, partition, first, last):
    return AcknowledgeResult(topic, partition, first, last, RELEASE, None)


def test_first_record_of_a_partition_is_logged_and_the_others_are_counted(caplog):
    recorder = MetricsRecorder()
    archiving = ArchiveWarnings(get_logger("sharecons.test"), recorder)
    with caplog.at_level(logging.WARNING, "sharecons"):
        archiving.on_archived([released("orders", 3, 7, 7)], 5, 100.0)
        for offset in range(8, 100):
            found = [released("orders", 3, offset, offset)]
            archiving.on_archived(found, 5, 100.0 + offset / 10)
        archiving.on_archived([released("orders", 4, 1, 2)], 5, 120.0)
        archiving.on_archived([released("orders", 3, 200, 204)], 5, 161.0)

    first, other, later = [record.getMessage() for record in caplog.records]
    assert "archived: no consumer gets them again" in first
    assert "topic=orders partition=3 offset=7 records=1 delivery_limit=5" in first
    assert "partition=4 offset=1 records=2" in other
    assert "partition=3 offset=200 records=97" in later
    assert 1 + 92 + 2 + 5 == recorder.snapshot()["sharecons-records-archived-total"]
