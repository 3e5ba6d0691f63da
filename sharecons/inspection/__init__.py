"""Inspection of share groups, and checks of a cluster before it is used.

`inspect_group` in `inspect` returns the status of each offset, and findings on why a
partition makes no progress; `find_records` in `oldest` returns the oldest unsettled
records, `states` the stored states. `gather`, `dead_letters` and `missing_topics` read
the rest. The package `diagnosis` decides what the findings and checks are, without I/O.

The other modules are imported on their own, so that a command loads only what it needs:

- `peek`: the records of a topic, without a group;
- `preflight`: checks of a cluster;
- `picture`: an inspection as a rich renderable, with `offset_bars`, `partition_rows`
  and `partition_table`; `picture_files` writes it as HTML or SVG.
"""

from sharecons.inspection.diagnosis.dead_letter_checks import (
    DeadLetterSettings,
    GroupDeadLetters,
)
from sharecons.inspection.diagnosis.findings import (
    Finding,
    Reason,
    Severity,
)
from sharecons.inspection.diagnosis.group_facts import GroupFacts
from sharecons.inspection.diagnosis.offset_states import (
    OffsetRange,
    OffsetStatus,
    OldestRecord,
    PartitionInspection,
)
from sharecons.inspection.inspect import GroupInspection, inspect_group
from sharecons.inspection.oldest import FoundRecords, find_records
from sharecons.inspection.states import StateSource

__all__ = [
    "DeadLetterSettings",
    "Finding",
    "FoundRecords",
    "GroupDeadLetters",
    "GroupFacts",
    "GroupInspection",
    "OffsetRange",
    "OffsetStatus",
    "OldestRecord",
    "PartitionInspection",
    "Reason",
    "Severity",
    "StateSource",
    "find_records",
    "inspect_group",
]
