"""Share groups seen from inside, and clusters before they are used.

`inspect_group` tells what has become of each offset, and why a partition stands still;
`oldest_records` how long records wait; `check_cluster` whether a cluster is ready.
"""

from sharecons.inspection.checks import check_cluster
from sharecons.inspection.looking import GroupInside, Source, inspect_group
from sharecons.inspection.oldest import oldest_records
from sharecons.protocol.checks import Check, Verdict
from sharecons.protocol.findings import Finding, GroupFacts, Reason, Severity
from sharecons.protocol.insides import Oldest, PartitionInside, Standing, Stretch

__all__ = [
    "Check",
    "Finding",
    "GroupFacts",
    "GroupInside",
    "Oldest",
    "PartitionInside",
    "Reason",
    "Severity",
    "Source",
    "Standing",
    "Stretch",
    "Verdict",
    "check_cluster",
    "inspect_group",
    "oldest_records",
]
