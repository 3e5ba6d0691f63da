"""Share groups seen from inside, and clusters before they are used.

`inspect_group` tells what has become of each offset, and why a partition stands still;
`oldest_records` how long records wait. What else there is, is a module away, so that
each command loads its own: `peeking.peek`, `checks.check_cluster`, `html.page`,
`png.draw`.
"""

from sharecons.inspection.inspect import GroupInspection, Source, inspect_group
from sharecons.inspection.oldest import oldest_records
from sharecons.protocol.diagnosis.findings import Finding, GroupFacts, Reason, Severity
from sharecons.protocol.diagnosis.offset_states import (
    OffsetRange,
    OffsetStatus,
    Oldest,
    PartitionInspection,
)

__all__ = [
    "Finding",
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
