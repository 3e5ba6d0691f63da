"""Warnings about records that a release has archived."""

import logging

from sharecons.log import get_logger
from sharecons.member.archive_warnings import ArchiveWarnings
from sharecons.member.group_configs import GroupConfigReader
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.protocol.acknowledge.result_log import LastRelease


class Archiving:
    """Warnings with a delivery limit, and a clock that the test sets."""

    def __init__(self, delivery_limit=5):
        self.recorder = MetricsRecorder()
        self.configs = GroupConfigReader("billing", delivery_limit)
        self.warnings = ArchiveWarnings(
            get_logger("sharecons.test"), self.recorder, self.configs
        )

    def released(self, partition, first, last, now, delivery_count=5):
        release = LastRelease("orders", partition, first, last, delivery_count)
        self.warnings.on_released([release], lambda: now)

    @property
    def count(self):
        return self.recorder.snapshot()["sharecons-records-archived-total"]


def test_first_record_of_a_partition_is_logged_and_the_others_are_counted(caplog):
    archiving = Archiving()
    with caplog.at_level(logging.WARNING, "sharecons"):
        archiving.released(3, 7, 7, 100.0)
        for offset in range(8, 100):
            archiving.released(3, offset, offset, 100.0 + offset / 10)
        archiving.released(4, 1, 2, 120.0)
        archiving.released(3, 200, 204, 161.0)

    first, other, later = [record.getMessage() for record in caplog.records]
    assert "archived: no consumer gets them again" in first
    assert "topic=orders partition=3 offset=7 records=1 delivery_limit=5" in first
    assert "partition=4 offset=1 records=2" in other
    assert "partition=3 offset=200 records=97" in later
    assert 1 + 92 + 2 + 5 == archiving.count


def test_records_whose_locks_were_lost_have_a_line_of_their_own(caplog):
    archiving = Archiving()
    released = LastRelease("orders", 3, 7, 7, 5)
    lost = released._replace(first_offset=8, last_offset=9, is_lost=True)

    archiving.warnings.on_released([released, lost], lambda: 100.0)

    _, line = [record.getMessage() for record in caplog.records]
    assert "locks were lost on their last delivery are archived" in line
    assert "topic=orders partition=3 offset=8 records=2 delivery_limit=5" in line
    assert 3 == archiving.count


def test_records_released_before_the_present_limit_are_not_archived(caplog):
    archiving = Archiving(delivery_limit=5)
    archiving.configs.delivery_limit = 6

    archiving.released(3, 7, 7, 100.0, delivery_count=5)
    archiving.released(3, 8, 8, 100.0, delivery_count=6)

    (line,) = [record.getMessage() for record in caplog.records]
    assert "offset=8 records=1 delivery_limit=6" in line
    assert 1 == archiving.count
