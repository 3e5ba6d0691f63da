"""Inspection of share groups, and checks of a cluster before it is used.

`inspect_group` returns the status of each offset, and findings on why a partition
makes no progress; `oldest_records` returns the oldest unsettled records. The other
modules are imported on their own, so that each command loads only what it needs:
`peek.peek`, `preflight.check_cluster`, `html.page`, `png.draw`. They share `gather`,
`dead_letters`, `missing_topics` and `offset_bars`. The package `diagnosis` decides what
the findings and checks are, without I/O.
"""

from sharecons.inspection.diagnosis.dead_letter_checks import (
    DeadLetterSettings,
    GroupDeadLetters,
)
from sharecons.inspection.diagnosis.findings import (
    Finding,
    GroupFacts,
    Reason,
    Severity,
)
from sharecons.inspection.diagnosis.offset_states import (
    OffsetRange,
    OffsetStatus,
    Oldest,
    PartitionInspection,
)
from sharecons.inspection.inspect import GroupInspection, Source, inspect_group
from sharecons.inspection.oldest import oldest_records

__all__ = [
    "DeadLetterSettings",
    "Finding",
    "GroupDeadLetters",
    "GroupFacts",
    "GroupInspection",
    "OffsetRange",
    "OffsetStatus",
    "Oldest",
    "PartitionInspection",
    "Reason",
    "Severity",
    "Source",
    "inspect_group",
    "oldest_records",
]
