"""Warnings about records that a release has archived."""

from sharecons.log import get_logger
from sharecons.member.archive_warnings import ArchiveWarnings
from sharecons.member.group_configs import GroupConfigReader
from sharecons.metrics.catalog import values_of
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.protocol.acknowledge.result_log import LastRelease


class Archiving:
    """Warnings with a delivery limit, and a clock that the test sets."""

    def __init__(self, delivery_limit=5):
        self.now = 100.0
        self.recorder = MetricsRecorder()
        self.configs = GroupConfigReader("billing", delivery_limit)
        self.warnings = ArchiveWarnings(
            get_logger("sharecons.test"),
            self.recorder,
            self.configs,
            lambda: self.now,
        )

    def released(self, partition, first, last, delivery_count=5):
        release = LastRelease("orders", partition, first, last, delivery_count)
        self.warnings.on_released([release])

    @property
    def count(self):
        return values_of(self.recorder)["sharecons-records-archived-total"]


def test_archived_records_have_their_positions_in_a_line_a_minute(caplog):
    archiving = Archiving()
    archiving.released(3, 7, 7)
    for archiving.now in range(101, 150):
        archiving.released(3, archiving.now, archiving.now)
    archiving.released(4, 1, 2)
    archiving.now = 161.0
    archiving.released(3, 200, 204)

    first, later = [record.getMessage() for record in caplog.records]
    assert "archived: no consumer gets them again" in first
    assert "records=1 positions=orders-3@7 delivery_limit=5" in first
    assert "records=56 positions='orders-3@101-149, orders-3@200-204, ord" in later
    assert 57 == archiving.count


def test_last_archived_records_have_a_line_without_further_ones(caplog):
    archiving = Archiving()
    for offset in (7, 8):
        archiving.released(3, offset, offset)
    archiving.now = 161.0
    archiving.warnings.flush()
    archiving.released(3, 9, 9)
    archiving.warnings.flush(at_end=True)
    archiving.warnings.flush(at_end=True)

    lines = [record.getMessage() for record in caplog.records]
    assert ["7", "8", "9"] == [line.partition("orders-3@")[2][0] for line in lines]


def test_records_whose_locks_were_lost_have_a_line_of_their_own(caplog):
    archiving = Archiving()
    released = LastRelease("orders", 3, 7, 7, 5)
    lost = released._replace(first_offset=8, last_offset=9, is_lost=True)

    archiving.warnings.on_released([released, lost])

    _, line = [record.getMessage() for record in caplog.records]
    assert "locks were lost on their last delivery are archived" in line
    assert "records=2 positions=orders-3@8-9 delivery_limit=5" in line
    assert 3 == archiving.count


def test_records_released_before_the_present_limit_are_not_archived(caplog):
    archiving = Archiving(delivery_limit=5)
    archiving.configs.delivery_limit = 6

    archiving.released(3, 7, 7, delivery_count=5)
    archiving.released(3, 8, 8, delivery_count=6)

    (line,) = [record.getMessage() for record in caplog.records]
    assert "records=1 positions=orders-3@8 delivery_limit=6" in line
    assert 1 == archiving.count
