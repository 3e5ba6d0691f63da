"""Inspection of share groups, and checks of a cluster before it is used.

`inspect_group` in `inspect` returns the status of each offset, and findings on why a
partition makes no progress; `sharecons.group_state` reads what it needs, and
`dead_letters` the rest. The package `diagnosis` decides what the findings and checks
are, without I/O.

The other modules are imported on their own, so that a command loads only what it needs:

- `peek`: the records of a topic, without a group;
- `preflight`: checks of a cluster;
- `picture`: an inspection as a rich renderable, with `offset_bars`, `partition_rows`
  and `partition_table`; `picture_files` writes it as HTML or SVG. `bar_svg` draws the
  bars of these files and of the dashboard.
"""

from sharecons.group_state.group_facts import GroupFacts
from sharecons.group_state.group_states import PartitionState
from sharecons.group_state.offset_states import (
    OffsetRange,
    OffsetStatus,
    OldestRecord,
)
from sharecons.group_state.stored_states import StateSource
from sharecons.inspection.diagnosis.dead_letter_checks import (
    DeadLetterSettings,
    GroupDeadLetters,
)
from sharecons.inspection.diagnosis.findings import (
    Finding,
    Reason,
    Severity,
)
from sharecons.inspection.inspect import GroupInspection, inspect_group

__all__ = [
    "DeadLetterSettings",
    "Finding",
    "GroupDeadLetters",
    "GroupFacts",
    "GroupInspection",
    "OffsetRange",
    "OffsetStatus",
    "OldestRecord",
    "PartitionState",
    "Reason",
    "Severity",
    "StateSource",
    "inspect_group",
]
__dir__ = __all__.copy
