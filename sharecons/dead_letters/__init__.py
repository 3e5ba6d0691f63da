"""Reading, redriving and deleting dead letters of workers and of Kafka 4.4.

- `client`: `DeadLetters`, the API.
- `models`: a dead letter, and the result of a redrive.
- `filters`: which dead letters are read or redriven.
- `reader`: reads a dead-letter topic as a log.
- `sources`: reads the records that a broker's dead letters refer to.
- `plan`: which dead letter is written to which partition, in which batch.
- `decider`: applies the plan, with the partitions of the targets.
- `offset_ranges`: a set of offsets as ranges, and its text.
- `progress`: the stored progress of a redrive, with its marks.
- `progress_store`: keeps it in the committed offsets of a group.
- `redrive_state`: the marks and notes that a run starts with.
- `origins`: the origins of dead letters, to recognize duplicates.
- `marks`: the marks of all redrives of a topic.
- `deletion`: deletes dead letters before an offset.
- `summary_counts`: the counts of a run.
- `batch_writer`: writes a batch, and completes one that was interrupted.
- `redrive`: redrives a topic; describes how each dead letter is written once.
"""

from sharecons.dead_letters.client import DeadLetters
from sharecons.dead_letters.deletion import NotRedrivenError
from sharecons.dead_letters.filters import LetterFilter, parse_filter
from sharecons.dead_letters.models import (
    DeadLetterRecord,
    Deletion,
    LetterOffset,
    RedriveSummary,
    SourceStatus,
)
from sharecons.dead_letters.progress import MarksFullError
from sharecons.dead_letters.progress_store import RedriveConflictError

__all__ = [
    "DeadLetterRecord",
    "DeadLetters",
    "Deletion",
    "LetterFilter",
    "LetterOffset",
    "MarksFullError",
    "NotRedrivenError",
    "RedriveConflictError",
    "RedriveSummary",
    "SourceStatus",
    "parse_filter",
]
__dir__ = __all__.copy
